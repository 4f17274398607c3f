#pragma once

// Only this header depends on the version of xsimd (8.1 to 13.2).
#include <cstdint>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "framework/kernels/compiler.hpp"

namespace quantrain::kernels::simd {

#if defined(__AVXVNNI__)
/// AVX2 and FMA with the dot products of AVX-VNNI; every other operation is that of avx2.
struct AvxVnni : xsimd::fma3<xsimd::avx2> {
  static constexpr const char* name() noexcept { return "avxvnni"; }
};
#endif
#if defined(__AVX512VNNI__)
/// AVX-512 BW with the dot products of VNNI; every other operation is that of avx512bw.
struct Avx512Vnni : xsimd::avx512bw {
  static constexpr const char* name() noexcept { return "avx512vnni"; }
};
#endif
#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // Clang 14
/// AVX-512 VNNI with tiles of bytes; every other operation is that of avx512vnni.
struct Amx : Avx512Vnni {
  static constexpr const char* name() noexcept { return "amx"; }
};
#endif

// Neon64Dot is NEON with dot products of signed bytes. Neon64I8mm also has products of unsigned
// bytes with signed bytes, of vectors and of matrices. Every other operation is that of neon64.
#if defined(__ARM_FEATURE_DOTPROD)
struct Neon64Dot : xsimd::neon64 {
  static constexpr const char* name() noexcept { return "neon64dot"; }
};
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
struct Neon64I8mm : xsimd::neon64 {
  static constexpr const char* name() noexcept { return "neon64i8mm"; }
};
#endif

template <class T, class Arch>
using Batch = xsimd::batch<T, Arch>;

/// How many vector registers the instruction set has.
template <class Arch>
inline constexpr int kRegisters =
    Batch<float, Arch>::size == 16 || std::is_base_of_v<xsimd::neon64, Arch> ? 32 : 16;

/// A vector of 64-bit numbers, from the compiler's vector extension. Its operators include a vector
/// multiplication, whereas xsimd 8 multiplies 64-bit lanes one by one.
template <int bytes>
struct Numbers {
  typedef uint64_t Vector __attribute__((vector_size(bytes)));
};

/// Calls f(0), f(1) .. f(N - 1). The arguments are compile-time constants, so that arrays that they
/// index stay in registers.
template <class F, int... i>
inline QUANTRAIN_INLINE void repeat(std::integer_sequence<int, i...>, const F& f) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int N, class F>
inline QUANTRAIN_INLINE void repeat(const F& f) {
  repeat(std::make_integer_sequence<int, N>(), f);
}

/// a * b + c, rounded once if the instruction set has such an operation. xsimd 8 does not offer it
/// for AVX-512 and NEON.
template <class Arch>
inline Batch<float, Arch> fused(Batch<float, Arch> a, Batch<float, Arch> b, Batch<float, Arch> c) {
#if defined(__x86_64__)
  if constexpr (Batch<float, Arch>::size == 16) return _mm512_fmadd_ps(a, b, c);
#endif
#if defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  if constexpr (Batch<float, Arch>::size < 16) return xsimd::fma(a, b, c);
#endif
}

// Quotient and square root, rounded once. For NEON, xsimd 8 refines estimates instead.
template <class Arch>
inline Batch<float, Arch> quotient(Batch<float, Arch> a, Batch<float, Arch> b) {
#if defined(__aarch64__)
  return vdivq_f32(a, b);
#else
  return a / b;
#endif
}
template <class Arch>
inline Batch<float, Arch> square_root(Batch<float, Arch> a) {
#if defined(__aarch64__)
  return vsqrtq_f32(a);
#else
  return xsimd::sqrt(a);
#endif
}

/// Loads the first n elements, 0 < n <= the number of lanes. The other lanes are 0.
template <class Arch>
inline Batch<float, Arch> load_first(const float* from, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (Batch<float, Arch>::size == 16) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from);
  }
#endif
#if defined(__AVX2__)
  if constexpr (Batch<float, Arch>::size == 8) {
    if (n == 8) return Batch<float, Arch>::load_unaligned(from);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(
        from, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), lanes));
  }
#endif
  if constexpr (Batch<float, Arch>::size == 4) {
    if (n == 4) return Batch<float, Arch>::load_unaligned(from);
    // Elements after the first n must not be read.
    const auto lane = [=](int64_t i) { return i < n ? from[i] : 0.0f; };
#if defined(__x86_64__)
    return _mm_setr_ps(lane(0), lane(1), lane(2), lane(3));
#else
    return float32x4_t{lane(0), lane(1), lane(2), lane(3)};
#endif
  }
}

template <class Arch>
inline void store_first(float* to, Batch<float, Arch> v, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (Batch<float, Arch>::size == 16) {
    return _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << n) - 1), v);
  }
#endif
#if defined(__AVX2__)
  if constexpr (Batch<float, Arch>::size == 8) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskstore_ps(
        to, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), lanes), v);
  }
#endif
  float values[Batch<float, Arch>::size];
  v.store_unaligned(values);
  for (int64_t i = 0; i < n; ++i) to[i] = values[i];
}

/// Bit i of the result is lane i.
template <class Arch>
inline uint32_t lane_bits(xsimd::batch_bool<float, Arch> lanes) {
#if defined(__x86_64__)
  if constexpr (Batch<float, Arch>::size == 16) return lanes.data;
  if constexpr (Batch<float, Arch>::size == 8) {
    return static_cast<uint32_t>(_mm256_movemask_ps(lanes.data));
  }
  if constexpr (Batch<float, Arch>::size == 4) {
    return static_cast<uint32_t>(_mm_movemask_ps(lanes.data));
  }
#else
  bool values[Batch<float, Arch>::size];
  lanes.store_unaligned(values);
  uint32_t bits = 0;
  for (size_t i = 0; i < Batch<float, Arch>::size; ++i) bits |= uint32_t{values[i]} << i;
  return bits;
#endif
}

// Reinterprets the bits as numbers of the other type.
template <class Arch>
inline Batch<int32_t, Arch> as_ints(Batch<float, Arch> v) {
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::bitwise_cast<Batch<int32_t, Arch>>(v);
#else
  return xsimd::bitwise_cast<int32_t>(v);
#endif
}
template <class Arch>
inline Batch<float, Arch> as_floats(Batch<int32_t, Arch> v) {
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::bitwise_cast<Batch<float, Arch>>(v);
#else
  return xsimd::bitwise_cast<float>(v);
#endif
}

/// Makes the compiler read `kept`, and everything that it points to, from memory again. The loops
/// of a tile leave no general register free. So the compiler would spill values that are needed
/// after the loops. It may spill them to a vector register, and reading them back from there would
/// wait for all multiply-adds in flight.
template <class T>
inline QUANTRAIN_INLINE void forget_registers(T& kept) {
  asm volatile("" : "+m"(kept) : : "memory");
}

}  // namespace quantrain::kernels::simd
