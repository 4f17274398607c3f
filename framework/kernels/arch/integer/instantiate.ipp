// Instantiates every kernel of integer_kernels.inc for QUANTRAIN_ARCH and fills QUANTRAIN_TABLE.
// Each .cpp file of this folder defines these macros and QUANTRAIN_ARCH_NAME, then includes this
// file. A .cpp file may also define QUANTRAIN_BASE, the QUANTRAIN_ARCH of another .cpp file. Then
// it instantiates only the products of bytes (QUANTRAIN_PRODUCT), and its table takes all other
// kernels from the other file.
// This file is not a header, so it has no #pragma once.
#include "framework/kernels/dispatch/table.hpp"
#include "framework/kernels/simd/integer_depthwise.ipp"
#include "framework/kernels/simd/integer_dot.ipp"
#include "framework/kernels/simd/integer_few_bits.ipp"
#ifndef QUANTRAIN_BASE
#include "framework/kernels/simd/integer.ipp"
#include "framework/kernels/simd/integer_pool.ipp"
#endif

namespace quantrain::kernels {
namespace simd {
#ifdef QUANTRAIN_FEW_BITS_OF
// Products of fewer bits, which another file instantiates.
extern template void dot_few_bits<QUANTRAIN_FEW_BITS_OF>(const DotU8S8& p);
#else
#define QUANTRAIN_FEW_BITS_OF QUANTRAIN_ARCH
template void dot_few_bits<QUANTRAIN_ARCH>(const DotU8S8& p);
#endif
static_assert(std::is_same_v<Ints<QUANTRAIN_ARCH>::Few, QUANTRAIN_FEW_BITS_OF>);
#define QUANTRAIN_PRODUCT(name, parameters) template void name<QUANTRAIN_ARCH> parameters;
#ifdef QUANTRAIN_BASE
#define QUANTRAIN_KERNEL(name, parameters) \
  template <class Arch>                    \
  void name parameters;                    \
  extern template void name<QUANTRAIN_BASE> parameters;
#else
#define QUANTRAIN_BASE QUANTRAIN_ARCH
#define QUANTRAIN_KERNEL(name, parameters) template void name<QUANTRAIN_ARCH> parameters;
#endif
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
}  // namespace simd

extern const IntegerTable QUANTRAIN_TABLE;
const IntegerTable QUANTRAIN_TABLE = {
#define QUANTRAIN_PRODUCT(name, parameters) simd::name<QUANTRAIN_ARCH>,
#define QUANTRAIN_KERNEL(name, parameters) simd::name<QUANTRAIN_BASE>,
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
    QUANTRAIN_ARCH_NAME};

}  // namespace quantrain::kernels
