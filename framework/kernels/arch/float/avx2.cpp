#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH xsimd::fma3<xsimd::avx2>
#define QUANTRAIN_ARCH_NAME "avx2"
#define QUANTRAIN_TABLE kAvx2FloatKernels
#include "framework/kernels/arch/float/instantiate.ipp"
