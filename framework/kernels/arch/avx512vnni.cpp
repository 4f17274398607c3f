#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH quantrain::kernels::simd::Avx512Vnni
#define QUANTRAIN_ARCH_F32 xsimd::avx512bw
#define QUANTRAIN_ARCH_NAME "avx512vnni"
#define QUANTRAIN_TABLE kAvx512VnniKernels
#include "framework/kernels/arch/instantiate.ipp"
