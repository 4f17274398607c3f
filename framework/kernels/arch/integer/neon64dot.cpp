#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH quantrain::kernels::simd::Neon64Dot
#define QUANTRAIN_BASE xsimd::neon64
#define QUANTRAIN_ARCH_NAME "neon64dot"
#define QUANTRAIN_TABLE kNeon64DotIntegerKernels
#include "framework/kernels/arch/integer/instantiate.ipp"
