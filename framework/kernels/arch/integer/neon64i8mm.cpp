#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH quantrain::kernels::simd::Neon64I8mm
#define QUANTRAIN_BASE xsimd::neon64
#define QUANTRAIN_ARCH_NAME "neon64i8mm"
#define QUANTRAIN_TABLE kNeon64I8mmIntegerKernels
#include "framework/kernels/arch/integer/instantiate.ipp"
