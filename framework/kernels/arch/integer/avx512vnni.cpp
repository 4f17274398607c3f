#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH quantrain::kernels::simd::Avx512Vnni
#define QUANTRAIN_BASE xsimd::avx512bw
#define QUANTRAIN_ARCH_NAME "avx512vnni"
#define QUANTRAIN_TABLE kAvx512VnniIntegerKernels
#include "framework/kernels/arch/integer/instantiate.ipp"
