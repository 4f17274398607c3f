#include "framework/kernels/simd/batch.hpp"

#define QUANTRAIN_ARCH quantrain::kernels::simd::AvxVnni
#define QUANTRAIN_BASE xsimd::fma3<xsimd::avx2>
#define QUANTRAIN_FEW_BITS_OF xsimd::fma3<xsimd::avx2>
#define QUANTRAIN_ARCH_NAME "avxvnni"
#define QUANTRAIN_TABLE kAvxVnniIntegerKernels
#include "framework/kernels/arch/integer/instantiate.ipp"
