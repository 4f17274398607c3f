#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH xsimd::avx512bw
#define QUANTRAIN_ARCH_NAME "avx512bw"
#define QUANTRAIN_TABLE kAvx512BwFloatKernels
#include "framework/kernels/arch/float/instantiate.ipp"
