#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH xsimd::avx512bw
#define QUANTRAIN_FEW_BITS_OF xsimd::fma3<xsimd::avx2>
#define QUANTRAIN_ARCH_NAME "avx512bw"
#define QUANTRAIN_TABLE kAvx512BwIntegerKernels
#include "framework/kernels/arch/integer/instantiate.ipp"
