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

/// a * b + c, rounded once wherever the instruction set can; xsimd 8 has no such operation for
/// AVX-512.
template <class Arch>
inline Batch<float, Arch> fused(Batch<float, Arch> a, Batch<float, Arch> b, Batch<float, Arch> c) {
#if defined(__x86_64__)
  if constexpr (Batch<float, Arch>::size == 16) return _mm512_fmadd_ps(a, b, c);
#endif
  if constexpr (Batch<float, Arch>::size < 16) return xsimd::fma(a, b, c);
}

}  // namespace quantrain::kernels::simd
