#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH xsimd::neon64
#define QUANTRAIN_ARCH_NAME "neon64"
#define QUANTRAIN_TABLE kNeon64FloatKernels
#include "framework/kernels/arch/float/instantiate.ipp"
