// Instantiates every kernel of kernels.inc for QUANTRAIN_ARCH and fills QUANTRAIN_TABLE. Where
// QUANTRAIN_ARCH_F32 is defined, the kernels in float32 are those that another file of this folder
// instantiates. No #pragma once: each file of this folder includes it once.
#include "framework/kernels/simd/chains.ipp"
#include "framework/kernels/simd/columns.ipp"
#include "framework/kernels/simd/depthwise.ipp"
#include "framework/kernels/simd/dots.ipp"
#include "framework/kernels/simd/elementwise.ipp"
#include "framework/kernels/simd/gemm.ipp"
#include "framework/kernels/simd/integer.ipp"
#include "framework/kernels/simd/integer_pool.ipp"
#include "framework/kernels/simd/pack.ipp"
#include "framework/kernels/simd/pooling.ipp"
#include "framework/kernels/simd/softmax.ipp"
#include "framework/kernels/table.hpp"

namespace quantrain::kernels {

#ifdef QUANTRAIN_ARCH_F32
namespace simd {
#define QUANTRAIN_KERNEL(name, parameters)
#define QUANTRAIN_KERNEL_F32(name, parameters) \
  extern template void name<QUANTRAIN_ARCH_F32> parameters;
#include "framework/kernels/kernels.inc"
#undef QUANTRAIN_KERNEL
}  // namespace simd
#else
#define QUANTRAIN_ARCH_F32 QUANTRAIN_ARCH
#endif

extern const KernelTable QUANTRAIN_TABLE;
const KernelTable QUANTRAIN_TABLE = {
#define QUANTRAIN_KERNEL(name, parameters) simd::name<QUANTRAIN_ARCH>,
#define QUANTRAIN_KERNEL_F32(name, parameters) simd::name<QUANTRAIN_ARCH_F32>,
#include "framework/kernels/kernels.inc"
#undef QUANTRAIN_KERNEL
    QUANTRAIN_ARCH_NAME, simd::Batch<float, QUANTRAIN_ARCH_F32>::size};

}  // namespace quantrain::kernels
