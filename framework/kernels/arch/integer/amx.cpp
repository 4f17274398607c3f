#include "framework/kernels/dispatch/table.hpp"
#include "framework/kernels/simd/integer_tiles.ipp"

// AMX multiplies enough rows of bytes in tiles. All other kernels are those of AVX-512 VNNI.
namespace quantrain::kernels {
namespace simd {
#define QUANTRAIN_PRODUCT(name, parameters) \
  template <class Arch>                     \
  void name parameters;                     \
  extern template void name<Avx512Vnni> parameters;
#define QUANTRAIN_KERNEL(name, parameters) \
  template <class Arch>                    \
  void name parameters;                    \
  extern template void name<xsimd::avx512bw> parameters;
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
}  // namespace simd

namespace {

void dot(const DotU8S8& p) {
  if (simd::takes_tiles(p)) return simd::dot_tiles<simd::Amx>(p);
  simd::dot_u8s8<simd::Avx512Vnni>(p);
}

constexpr IntegerTable with_tiles() {
  IntegerTable table = {
#define QUANTRAIN_PRODUCT(name, parameters) simd::name<simd::Avx512Vnni>,
#define QUANTRAIN_KERNEL(name, parameters) simd::name<xsimd::avx512bw>,
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
      "amx"};
  table.dot_u8s8 = dot;
  return table;
}

}  // namespace

extern const IntegerTable kAmxIntegerKernels;
constinit const IntegerTable kAmxIntegerKernels = with_tiles();

}  // namespace quantrain::kernels
