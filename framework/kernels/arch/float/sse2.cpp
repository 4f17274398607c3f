#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH xsimd::sse2
#define QUANTRAIN_ARCH_NAME "sse2"
#define QUANTRAIN_TABLE kSse2FloatKernels
#include "framework/kernels/arch/float/instantiate.ipp"
