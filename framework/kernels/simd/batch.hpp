#pragma once

// The one header that knows xsimd's versions (8.1 to 13.2).
#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace quantrain::kernels::simd {

#if defined(__AVX512VNNI__)
/// AVX-512 BW with the dot products of VNNI; every other operation is that of avx512bw.
struct Avx512Vnni : xsimd::avx512bw {
  static constexpr const char* name() noexcept { return "avx512vnni"; }
};
#endif

template <class T, class Arch>
using Batch = xsimd::batch<T, Arch>;

}  // namespace quantrain::kernels::simd
