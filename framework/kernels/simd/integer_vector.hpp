#pragma once

#include <immintrin.h>

#include <type_traits>
#include <utility>

#include "framework/kernels/simd/batch.hpp"

// What integer kernels need and xsimd has not, one struct for each architecture: lanes of int32,
// the halves of 64-bit products, dot products of bytes. Everything is inlined always: the struct of
// AVX-512 is used in two files with different flags, so it must leave no symbol behind.
namespace quantrain::kernels::simd {

#define QUANTRAIN_INLINE inline __attribute__((always_inline))
#define QUANTRAIN_INLINED __attribute__((always_inline))

/// f(0), f(1) .. f(N - 1) with constants as arguments, one after the other: what such a loop
/// indexes stays in registers.
template <class F, int... i>
QUANTRAIN_INLINE void repeat(std::integer_sequence<int, i...>, const F& f) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int N, class F>
QUANTRAIN_INLINE void repeat(const F& f) {
  repeat(std::make_integer_sequence<int, N>(), f);
}

/// clamp(v, lo, hi), the end of every requantization.
struct Codes {
  int32_t lo, hi;
};

inline constexpr int32_t kSaturated = 1 << 30;

template <class Arch>
struct Ints;

/// The ends of tiles that any instruction set can write.
template <class Arch>
struct AnyInts {
  /// The first `count` lanes, all of them where there are fewer.
  template <class Int>
  static QUANTRAIN_INLINE void store_few(int32_t* p, Int v, int64_t count) {
    using I = Ints<Arch>;
    if (count >= I::kLanes) return I::store(p, v);
    int32_t lanes[I::kLanes];
    I::store(lanes, v);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  template <class Int>
  static QUANTRAIN_INLINE void store_few_codes(uint8_t* p,
                                               Int v,
                                               const Codes& codes,
                                               int64_t count) {
    using I = Ints<Arch>;
    if (count >= I::kLanes) return I::store_codes(p, v, codes);
    uint8_t lanes[I::kLanes];
    I::store_codes(lanes, v, codes);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  /// R rows of V vectors of codes from 0 to 255, rows `stride` bytes apart.
  template <int R, int V, class Int>
  static QUANTRAIN_INLINE void store_tile(uint8_t* p,
                                          int64_t stride,
                                          const Int (&tile)[R][V],
                                          const Codes& codes) {
    using I = Ints<Arch>;
    repeat<R>([&](auto r) QUANTRAIN_INLINED {
      repeat<V>([&](auto v) QUANTRAIN_INLINED {
        I::store_codes(p + r * stride + v * I::kLanes, tile[r][v], codes);
      });
    });
  }
};

template <>
struct Ints<xsimd::sse2> : AnyInts<xsimd::sse2> {
  using Int = __m128i;
  using Float = __m128;
  static constexpr int kLanes = 4;
  static constexpr int kMaxPanel = 2;
  /// Rows of a tile that is v vectors wide.
  static constexpr int rows(int) { return 4; }

  static QUANTRAIN_INLINE Int load(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
  }
  static QUANTRAIN_INLINE void store(void* p, Int v) {
    _mm_storeu_si128(static_cast<__m128i*>(p), v);
  }
  static QUANTRAIN_INLINE Int set1(int32_t v) { return _mm_set1_epi32(v); }
  static QUANTRAIN_INLINE Int zero() { return _mm_setzero_si128(); }
  static QUANTRAIN_INLINE Int load_u8(const uint8_t* p) {
    const Int bytes = _mm_unpacklo_epi8(four_bytes(p), zero());
    return _mm_unpacklo_epi16(bytes, zero());
  }
  static QUANTRAIN_INLINE Int load_s8(const int8_t* p) {
    const Int bytes = _mm_unpacklo_epi8(zero(), four_bytes(p));
    return _mm_srai_epi32(_mm_unpacklo_epi16(zero(), bytes), 24);
  }
  static QUANTRAIN_INLINE Int four_bytes(const void* p) {
    int32_t bytes;
    __builtin_memcpy(&bytes, p, 4);
    return _mm_cvtsi32_si128(bytes);
  }
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return _mm_add_epi32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return _mm_or_si128(a, b); }
  static QUANTRAIN_INLINE Int madd(Int a, Int b) { return _mm_madd_epi16(a, b); }
  /// Lane i stored as byte i of p.
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Codes& codes) {
    v = _mm_packs_epi32(v, v);
    v = _mm_max_epi16(v, _mm_set1_epi16(static_cast<int16_t>(codes.lo)));
    v = _mm_min_epi16(v, _mm_set1_epi16(static_cast<int16_t>(codes.hi)));
    v = _mm_and_si128(v, _mm_set1_epi16(0xff));  // the low byte of signed codes too
    const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(v, v));
    __builtin_memcpy(p, &bytes, 4);
  }
  /// Bit i: lo <= lane i <= hi.
  static QUANTRAIN_INLINE uint32_t bits_between(Int v, int32_t lo, int32_t hi) {
    const Int out = _mm_or_si128(_mm_cmpgt_epi32(set1(lo), v), _mm_cmpgt_epi32(v, set1(hi)));
    return ~static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(out))) & 0xfu;
  }

  // 64-bit products of the even lanes and, shifted down, of the odd ones.
  static QUANTRAIN_INLINE Int set1_64(int64_t v) { return _mm_set1_epi64x(v); }
  static QUANTRAIN_INLINE Int odd(Int v) { return _mm_srli_epi64(v, 32); }
  static QUANTRAIN_INLINE Int mul_unsigned(Int a, Int b) { return _mm_mul_epu32(a, b); }
  static QUANTRAIN_INLINE Int add64(Int a, Int b) { return _mm_add_epi64(a, b); }
  static QUANTRAIN_INLINE Int srl64(Int v, int count) {
    return _mm_srl_epi64(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int sra(Int v, int count) {
    return _mm_sra_epi32(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int low_halves(Int even, Int odd) {
    const Int low = _mm_and_si128(even, _mm_set_epi32(0, -1, 0, -1));
    return _mm_or_si128(low, _mm_slli_epi64(odd, 32));
  }
  static QUANTRAIN_INLINE Int high_halves(Int even, Int odd) {
    const Int high = _mm_and_si128(odd, _mm_set_epi32(-1, 0, -1, 0));
    return _mm_or_si128(_mm_srli_epi64(even, 32), high);
  }

  static QUANTRAIN_INLINE Float load(const float* p) { return _mm_loadu_ps(p); }
  static QUANTRAIN_INLINE void store(float* p, Float v) { _mm_storeu_ps(p, v); }
  static QUANTRAIN_INLINE Float set1(float v) { return _mm_set1_ps(v); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return _mm_div_ps(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return _mm_min_ps(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return _mm_max_ps(a, b); }
  /// 0 where v is finite.
  static QUANTRAIN_INLINE Int not_finite(Float v) { return _mm_castps_si128(_mm_sub_ps(v, v)); }
  static QUANTRAIN_INLINE uint32_t nan_bits(Float v) {
    return static_cast<uint32_t>(_mm_movemask_ps(_mm_cmpunord_ps(v, v)));
  }
  /// Nearest, ties to even; |v| < 2^31.
  static QUANTRAIN_INLINE Int round(Float v) { return _mm_cvtps_epi32(v); }
  /// Lane i where bit i is set, else 0.
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    const Int lane = _mm_set_epi32(8, 4, 2, 1);
    const Int set = _mm_cmpeq_epi32(_mm_and_si128(set1(static_cast<int32_t>(bits)), lane), lane);
    return _mm_and_ps(_mm_castsi128_ps(set), v);
  }

  using Bytes = __m128i;
  static constexpr int kBytes = 16;
  static QUANTRAIN_INLINE Bytes max_u8(Bytes a, Bytes b) { return _mm_max_epu8(a, b); }

  // Dot products of 4 bytes in two steps of 2: panels hold int16 (params.hpp).
  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int broadcast(const uint8_t* p, int step) {
    const Int quad = _mm_shuffle_epi32(four_bytes(p), 0);
    return step == 0 ? _mm_and_si128(quad, _mm_set1_epi16(0xff)) : _mm_srli_epi16(quad, 8);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm_add_epi32(acc, _mm_madd_epi16(x, w));
  }
};

#if defined(__AVX2__)
template <>
struct Ints<xsimd::fma3<xsimd::avx2>> : AnyInts<xsimd::fma3<xsimd::avx2>> {
  using Int = __m256i;
  using Float = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kMaxPanel = 3;
  static constexpr int rows(int v) { return v == 1 ? 8 : 4; }

  static QUANTRAIN_INLINE Int load(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static QUANTRAIN_INLINE void store(void* p, Int v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), v);
  }
  static QUANTRAIN_INLINE Int set1(int32_t v) { return _mm256_set1_epi32(v); }
  static QUANTRAIN_INLINE Int zero() { return _mm256_setzero_si256(); }
  static QUANTRAIN_INLINE Int load_u8(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static QUANTRAIN_INLINE Int load_s8(const int8_t* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  static QUANTRAIN_INLINE Int madd(Int a, Int b) { return _mm256_madd_epi16(a, b); }
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Codes& codes) {
    v = _mm256_max_epi32(v, set1(codes.lo));
    v = _mm256_min_epi32(v, set1(codes.hi));
    v = _mm256_and_si256(v, set1(0xff));  // the low byte of signed codes too
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
  }
  static QUANTRAIN_INLINE uint32_t bits_between(Int v, int32_t lo, int32_t hi) {
    const Int out =
        _mm256_or_si256(_mm256_cmpgt_epi32(set1(lo), v), _mm256_cmpgt_epi32(v, set1(hi)));
    return ~static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(out))) & 0xffu;
  }

  static QUANTRAIN_INLINE Int set1_64(int64_t v) { return _mm256_set1_epi64x(v); }
  static QUANTRAIN_INLINE Int odd(Int v) { return _mm256_srli_epi64(v, 32); }
  static QUANTRAIN_INLINE Int mul(Int a, Int b) { return _mm256_mul_epi32(a, b); }
  static QUANTRAIN_INLINE Int mul_unsigned(Int a, Int b) { return _mm256_mul_epu32(a, b); }
  static QUANTRAIN_INLINE Int add64(Int a, Int b) { return _mm256_add_epi64(a, b); }
  static QUANTRAIN_INLINE Int srl64(Int v, int count) {
    return _mm256_srl_epi64(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int sra(Int v, int count) {
    return _mm256_sra_epi32(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int srav(Int v, Int counts) { return _mm256_srav_epi32(v, counts); }
  static QUANTRAIN_INLINE Int sllv64(Int v, Int counts) { return _mm256_sllv_epi64(v, counts); }
  /// Rule 8's unsigned form: there is no arithmetic shift of 64 bits; |v| < 2^63 - 2^62.
  static QUANTRAIN_INLINE Int srav64(Int v, Int counts) {
    const Int bias = set1_64(int64_t{1} << 62);
    return _mm256_sub_epi64(_mm256_srlv_epi64(_mm256_add_epi64(v, bias), counts),
                            _mm256_srlv_epi64(bias, counts));
  }
  static QUANTRAIN_INLINE Int saturate64(Int v) {
    const Int hi = set1_64(kSaturated);
    const Int lo = set1_64(-kSaturated);
    v = _mm256_blendv_epi8(v, hi, _mm256_cmpgt_epi64(v, hi));
    return _mm256_blendv_epi8(v, lo, _mm256_cmpgt_epi64(lo, v));
  }
  static QUANTRAIN_INLINE Int low_halves(Int even, Int odd) {
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  }
  static QUANTRAIN_INLINE Int high_halves(Int even, Int odd) {
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  }

  static QUANTRAIN_INLINE Float load(const float* p) { return _mm256_loadu_ps(p); }
  static QUANTRAIN_INLINE void store(float* p, Float v) { _mm256_storeu_ps(p, v); }
  static QUANTRAIN_INLINE Float set1(float v) { return _mm256_set1_ps(v); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return _mm256_div_ps(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static QUANTRAIN_INLINE Int not_finite(Float v) {
    return _mm256_castps_si256(_mm256_sub_ps(v, v));
  }
  static QUANTRAIN_INLINE uint32_t nan_bits(Float v) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
  }
  static QUANTRAIN_INLINE Int round(Float v) { return _mm256_cvtps_epi32(v); }
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    const Int lane = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    const Int set =
        _mm256_cmpeq_epi32(_mm256_and_si256(set1(static_cast<int32_t>(bits)), lane), lane);
    return _mm256_and_ps(_mm256_castsi256_ps(set), v);
  }

  using Bytes = __m256i;
  static constexpr int kBytes = 32;
  static QUANTRAIN_INLINE Bytes max_u8(Bytes a, Bytes b) { return _mm256_max_epu8(a, b); }

  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int broadcast(const uint8_t* p, int step) {
    int32_t bytes;
    __builtin_memcpy(&bytes, p, 4);
    const Int quad = set1(bytes);
    return step == 0 ? _mm256_and_si256(quad, _mm256_set1_epi16(0xff)) : _mm256_srli_epi16(quad, 8);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x, w));
  }
};
#endif

#if defined(__AVX512BW__)
template <>
struct Ints<xsimd::avx512bw> {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kMaxPanel = 4;
  static constexpr int rows(int v) { return v == 4 ? 6 : 8; }

  /// A mask as a number. g++ 12 keeps it in a mask register, and around a call (the thread
  /// sanitizer makes them) saves two bytes of it and reads four back; a general register is saved
  /// whole.
  static QUANTRAIN_INLINE uint32_t bits(__mmask16 mask) {
    uint32_t number = mask;
    __asm__("" : "+r"(number));
    return number;
  }

  static QUANTRAIN_INLINE Int load(const void* p) { return _mm512_loadu_si512(p); }
  static QUANTRAIN_INLINE void store(void* p, Int v) { _mm512_storeu_si512(p, v); }
  static QUANTRAIN_INLINE Int set1(int32_t v) { return _mm512_set1_epi32(v); }
  static QUANTRAIN_INLINE Int zero() { return _mm512_setzero_si512(); }
  static QUANTRAIN_INLINE Int load_u8(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static QUANTRAIN_INLINE Int load_s8(const int8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  static QUANTRAIN_INLINE Int madd(Int a, Int b) { return _mm512_madd_epi16(a, b); }
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Codes& codes) {
    v = _mm512_max_epi32(v, set1(codes.lo));
    v = _mm512_min_epi32(v, set1(codes.hi));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
  }
  static QUANTRAIN_INLINE uint32_t first(int64_t count) {
    return count >= 16 ? 0xffffu : count <= 0 ? 0 : (1u << count) - 1;
  }
  static QUANTRAIN_INLINE void store_few(int32_t* p, Int v, int64_t count) {
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>(first(count)), v);
  }
  static QUANTRAIN_INLINE void store_few_codes(uint8_t* p,
                                               Int v,
                                               const Codes& codes,
                                               int64_t count) {
    v = _mm512_min_epi32(_mm512_max_epi32(v, set1(codes.lo)), set1(codes.hi));
    _mm_mask_storeu_epi8(p, static_cast<__mmask16>(first(count)), _mm512_cvtepi32_epi8(v));
  }
  /// 16 bytes of each of four vectors, one after the other.
  static QUANTRAIN_INLINE Int pack_codes(Int a, Int b, Int c, Int d, const Codes& codes) {
    const Int bytes = _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    const Int clamped =
        _mm512_min_epu8(_mm512_max_epu8(bytes, _mm512_set1_epi8(static_cast<char>(codes.lo))),
                        _mm512_set1_epi8(static_cast<char>(codes.hi)));
    const Int order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_epi32(order, clamped);
  }
  template <int R, int V>
  static QUANTRAIN_INLINE void store_tile(uint8_t* p,
                                          int64_t stride,
                                          const Int (&tile)[R][V],
                                          const Codes& codes) {
    const auto at = [&](int i) __attribute__((always_inline)) {
      return p + i / V * stride + i % V * kLanes;
    };
    repeat<R * V / 4>([&](auto group) QUANTRAIN_INLINED {
      constexpr int i = 4 * group;
      const Int bytes = pack_codes(tile[i / V][i % V],
                                   tile[(i + 1) / V][(i + 1) % V],
                                   tile[(i + 2) / V][(i + 2) % V],
                                   tile[(i + 3) / V][(i + 3) % V],
                                   codes);
      if constexpr (V == 4) {
        store(at(i), bytes);
      } else if constexpr (V == 2) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at(i)), _mm512_castsi512_si256(bytes));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at(i + 2)),
                            _mm512_extracti64x4_epi64(bytes, 1));
      } else {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at(i)), _mm512_castsi512_si128(bytes));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at(i + 1)),
                         _mm512_extracti32x4_epi32(bytes, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at(i + 2)),
                         _mm512_extracti32x4_epi32(bytes, 2));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at(i + 3)),
                         _mm512_extracti32x4_epi32(bytes, 3));
      }
    });
    repeat<R * V % 4>([&](auto last) QUANTRAIN_INLINED {
      constexpr int i = R * V / 4 * 4 + last;
      store_codes(at(i), tile[i / V][i % V], codes);
    });
  }
  static QUANTRAIN_INLINE uint32_t bits_between(Int v, int32_t lo, int32_t hi) {
    return bits(_mm512_mask_cmple_epi32_mask(_mm512_cmpge_epi32_mask(v, set1(lo)), v, set1(hi)));
  }

  static QUANTRAIN_INLINE Int set1_64(int64_t v) { return _mm512_set1_epi64(v); }
  static QUANTRAIN_INLINE Int odd(Int v) { return _mm512_srli_epi64(v, 32); }
  static QUANTRAIN_INLINE Int mul(Int a, Int b) { return _mm512_mul_epi32(a, b); }
  static QUANTRAIN_INLINE Int mul_unsigned(Int a, Int b) { return _mm512_mul_epu32(a, b); }
  static QUANTRAIN_INLINE Int add64(Int a, Int b) { return _mm512_add_epi64(a, b); }
  static QUANTRAIN_INLINE Int srl64(Int v, int count) {
    return _mm512_srl_epi64(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int sra(Int v, int count) {
    return _mm512_sra_epi32(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int srav(Int v, Int counts) { return _mm512_srav_epi32(v, counts); }
  static QUANTRAIN_INLINE Int sllv64(Int v, Int counts) { return _mm512_sllv_epi64(v, counts); }
  static QUANTRAIN_INLINE Int srav64(Int v, Int counts) { return _mm512_srav_epi64(v, counts); }
  static QUANTRAIN_INLINE Int saturate64(Int v) {
    return _mm512_max_epi64(_mm512_min_epi64(v, set1_64(kSaturated)), set1_64(-kSaturated));
  }
  static QUANTRAIN_INLINE Int low_halves(Int even, Int odd) {
    return _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA);
  }
  static QUANTRAIN_INLINE Int high_halves(Int even, Int odd) {
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
  }

  static QUANTRAIN_INLINE Float load(const float* p) { return _mm512_loadu_ps(p); }
  static QUANTRAIN_INLINE void store(float* p, Float v) { _mm512_storeu_ps(p, v); }
  static QUANTRAIN_INLINE Float set1(float v) { return _mm512_set1_ps(v); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return _mm512_div_ps(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static QUANTRAIN_INLINE Int not_finite(Float v) {
    return _mm512_castps_si512(_mm512_sub_ps(v, v));
  }
  static QUANTRAIN_INLINE uint32_t nan_bits(Float v) {
    return bits(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q));
  }
  static QUANTRAIN_INLINE Int round(Float v) { return _mm512_cvtps_epi32(v); }
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    return _mm512_maskz_mov_ps(static_cast<__mmask16>(bits), v);
  }

  using Bytes = __m512i;
  static constexpr int kBytes = 64;
  static QUANTRAIN_INLINE Bytes max_u8(Bytes a, Bytes b) { return _mm512_max_epu8(a, b); }

  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int broadcast(const uint8_t* p, int step) {
    int32_t bytes;
    __builtin_memcpy(&bytes, p, 4);
    const Int quad = set1(bytes);
    return step == 0 ? _mm512_and_si512(quad, _mm512_set1_epi16(0xff)) : _mm512_srli_epi16(quad, 8);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(x, w));
  }
};
#endif

#if defined(__AVX512VNNI__)
template <>
struct Ints<Avx512Vnni> : Ints<xsimd::avx512bw> {
  static constexpr bool kPairs = false;
  static constexpr int kSteps = 1;
  static QUANTRAIN_INLINE Int broadcast(const uint8_t* p, int) {
    int32_t bytes;
    __builtin_memcpy(&bytes, p, 4);
    return set1(bytes);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) { return _mm512_dpbusd_epi32(acc, x, w); }
};
#endif

}  // namespace quantrain::kernels::simd
