// Instantiates every kernel of float_kernels.inc for QUANTRAIN_ARCH and fills QUANTRAIN_TABLE.
// Each .cpp file of this folder defines these macros and QUANTRAIN_ARCH_NAME, then includes this
// file. This file is not a header, so it has no #pragma once.
#include "framework/kernels/dispatch/table.hpp"
#include "framework/kernels/simd/chains.ipp"
#include "framework/kernels/simd/columns.ipp"
#include "framework/kernels/simd/depthwise.ipp"
#include "framework/kernels/simd/depthwise_weights.ipp"
#include "framework/kernels/simd/dots.ipp"
#include "framework/kernels/simd/elementwise.ipp"
#include "framework/kernels/simd/gemm.ipp"
#include "framework/kernels/simd/optimizer.ipp"
#include "framework/kernels/simd/pack.ipp"
#include "framework/kernels/simd/pooling.ipp"
#include "framework/kernels/simd/ranges.ipp"
#include "framework/kernels/simd/softmax.ipp"

namespace quantrain::kernels {

extern const FloatTable QUANTRAIN_TABLE;
const FloatTable QUANTRAIN_TABLE = {
#define QUANTRAIN_KERNEL(name, parameters) simd::name<QUANTRAIN_ARCH>,
#include "framework/kernels/dispatch/float_kernels.inc"
#undef QUANTRAIN_KERNEL
    QUANTRAIN_ARCH_NAME, simd::Batch<float, QUANTRAIN_ARCH>::size};

}  // namespace quantrain::kernels
