// Instantiates every kernel of integer_kernels.inc for QUANTRAIN_ARCH and fills QUANTRAIN_TABLE.
// Each .cpp file of this folder defines these macros and QUANTRAIN_ARCH_NAME, then includes this
// file. This file is not a header, so it has no #pragma once.
#include "framework/kernels/dispatch/table.hpp"
#include "framework/kernels/simd/integer.ipp"
#include "framework/kernels/simd/integer_depthwise.ipp"
#include "framework/kernels/simd/integer_pool.ipp"

namespace quantrain::kernels {

extern const IntegerTable QUANTRAIN_TABLE;
const IntegerTable QUANTRAIN_TABLE = {
#define QUANTRAIN_KERNEL(name, parameters) simd::name<QUANTRAIN_ARCH>,
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
    QUANTRAIN_ARCH_NAME};

}  // namespace quantrain::kernels
