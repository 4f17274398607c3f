#pragma once

#include <immintrin.h>

#include "framework/kernels/simd/integer_sse2.hpp"

namespace quantrain::kernels::simd {

template <>
struct Ints<xsimd::fma3<xsimd::avx2>> : AnyInts<xsimd::fma3<xsimd::avx2>> {
  using Int = __m256i;
  using Float = __m256;
  static constexpr int kLanes = 8;
  static constexpr bool kManyRegisters = false;
  static constexpr int kMaxPanel = 3;
  static constexpr int kShortPanel = 3;
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
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  static QUANTRAIN_INLINE Int bit_and(Int a, Int b) { return _mm256_and_si256(a, b); }
  static QUANTRAIN_INLINE Int sub8(Int a, Int b) { return _mm256_sub_epi8(a, b); }
  using Shift = Int;
  static QUANTRAIN_INLINE Shift shift_by(int32_t bits) { return set1(bits); }
  static QUANTRAIN_INLINE Int srl(Int v, Shift bits) { return _mm256_srlv_epi32(v, bits); }
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Clamp& clamp) {
    v = _mm256_max_epi32(v, set1(clamp.lo));
    v = _mm256_min_epi32(v, set1(clamp.hi));
    v = _mm256_and_si256(v, set1(0xff));  // keeps the low byte, also of negative codes
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
  }
  /// Narrows four vectors to one: 8 bytes of a, then 8 of b, of c and of d, clamped.
  static QUANTRAIN_INLINE Int pack_codes(Int a, Int b, Int c, Int d, const Clamp& clamp) {
    const Int bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    const Int clamped =
        _mm256_min_epu8(_mm256_max_epu8(bytes, _mm256_set1_epi8(static_cast<char>(clamp.lo))),
                        _mm256_set1_epi8(static_cast<char>(clamp.hi)));
    return _mm256_permutevar8x32_epi32(clamped, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0));
  }
  template <int R, int V>
  static QUANTRAIN_INLINE void store_tile(uint8_t* p,
                                          int64_t stride,
                                          const Int (&tile)[R][V],
                                          const Clamp& clamp) {
    const auto at = [&](int i) QUANTRAIN_INLINE { return p + i / V * stride + i % V * kLanes; };
    repeat<R * V / 4>([&](auto group) QUANTRAIN_INLINE {
      constexpr int i = 4 * group;
      const Int bytes = pack_codes(tile[i / V][i % V],
                                   tile[(i + 1) / V][(i + 1) % V],
                                   tile[(i + 2) / V][(i + 2) % V],
                                   tile[(i + 3) / V][(i + 3) % V],
                                   clamp);
      const __m128i low = _mm256_castsi256_si128(bytes);
      const __m128i high = _mm256_extracti128_si256(bytes, 1);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(at(i)), low);
      _mm_storeh_pd(reinterpret_cast<double*>(at(i + 1)), _mm_castsi128_pd(low));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(at(i + 2)), high);
      _mm_storeh_pd(reinterpret_cast<double*>(at(i + 3)), _mm_castsi128_pd(high));
    });
    repeat<R * V % 4>([&](auto last) QUANTRAIN_INLINE {
      constexpr int i = R * V / 4 * 4 + last;
      store_codes(at(i), tile[i / V][i % V], clamp);
    });
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
  static QUANTRAIN_INLINE Int sllv(Int v, Int counts) { return _mm256_sllv_epi32(v, counts); }
  static QUANTRAIN_INLINE Int srav(Int v, Int counts) { return _mm256_srav_epi32(v, counts); }
  static QUANTRAIN_INLINE Int sllv64(Int v, Int counts) { return _mm256_sllv_epi64(v, counts); }
  /// An arithmetic shift. AVX2 has none for 64 bits, so this is the unsigned form that
  /// docs/quantization.md describes at (8). Requires -2^62 <= v < 2^63.
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
  static QUANTRAIN_INLINE Float mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return _mm256_div_ps(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static QUANTRAIN_INLINE float smallest(Float v) {
    __m128 a = _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_min_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_min_ss(a, _mm_movehdup_ps(a)));
  }
  static QUANTRAIN_INLINE float largest(Float v) {
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
  }
  static QUANTRAIN_INLINE bool any(Int v) { return _mm256_testz_si256(v, v) == 0; }
  static QUANTRAIN_INLINE Int as_ints(Float v) { return _mm256_castps_si256(v); }
  static QUANTRAIN_INLINE Int not_finite(Float v) { return as_ints(_mm256_sub_ps(v, v)); }
  static QUANTRAIN_INLINE Int round(Float v) { return _mm256_cvtps_epi32(v); }
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    const Int lane = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    const Int set =
        _mm256_cmpeq_epi32(_mm256_and_si256(set1(static_cast<int32_t>(bits)), lane), lane);
    return _mm256_and_ps(_mm256_castsi256_ps(set), v);
  }

  /// The operations for fewer than kBytes bytes of data.
  using Narrow = Ints<xsimd::sse2>;
  static constexpr int kBytes = 32;
  static QUANTRAIN_INLINE Int max_u8(Int a, Int b) { return _mm256_max_epu8(a, b); }
  static QUANTRAIN_INLINE void interleave(const uint8_t* const (&rows)[4], int64_t i, uint8_t* to) {
    // Unpacking works within 128-bit halves. With this order of words, the results are consecutive.
    const Int order = _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0);
    const Int a = _mm256_permutevar8x32_epi32(load(rows[0] + i), order);
    const Int b = _mm256_permutevar8x32_epi32(load(rows[1] + i), order);
    const Int c = _mm256_permutevar8x32_epi32(load(rows[2] + i), order);
    const Int d = _mm256_permutevar8x32_epi32(load(rows[3] + i), order);
    const Int ab_low = _mm256_unpacklo_epi8(a, b);
    const Int ab_high = _mm256_unpackhi_epi8(a, b);
    const Int cd_low = _mm256_unpacklo_epi8(c, d);
    const Int cd_high = _mm256_unpackhi_epi8(c, d);
    store(to, _mm256_unpacklo_epi16(ab_low, cd_low));
    store(to + 32, _mm256_unpackhi_epi16(ab_low, cd_low));
    store(to + 64, _mm256_unpacklo_epi16(ab_high, cd_high));
    store(to + 96, _mm256_unpackhi_epi16(ab_high, cd_high));
  }

  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int part(Int quad, int step) {
    return step == 0 ? _mm256_and_si256(quad, _mm256_set1_epi16(0xff)) : _mm256_srli_epi16(quad, 8);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x, w));
  }

  static constexpr int kFewPanel = 2;
  static constexpr bool kNarrow = true;
  static constexpr bool kFields = true;
  /// acc + the dot products of the bytes of x0 with w0, and of x1 with w1. Weights lie in
  /// [-32, 32], so that two products of a pair of bytes fit in 16 bits.
  static QUANTRAIN_INLINE Int dot_two(Int acc, Int x0, Int w0, Int x1, Int w1) {
    const Int pairs = _mm256_add_epi16(_mm256_maddubs_epi16(x0, w0), _mm256_maddubs_epi16(x1, w1));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  /// Adds the number of ones in each byte of v.
  static QUANTRAIN_INLINE Int count(Int counts, Int v) {
    const Int ones =  // of the numbers 0 to 15
        _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0403030203020201, 0x0302020102010100));
    const Int half = _mm256_set1_epi8(0xf);
    const Int low = _mm256_shuffle_epi8(ones, bit_and(v, half));
    const Int high = _mm256_shuffle_epi8(ones, bit_and(_mm256_srli_epi16(v, 4), half));
    return _mm256_add_epi8(counts, _mm256_add_epi8(low, high));
  }
  static QUANTRAIN_INLINE Int add_counts(Int acc, Int counts) {
    return dot(acc, _mm256_maddubs_epi16(counts, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
  }
  /// Bit i of the result is bit 0 of byte i, for kBytes bytes.
  static QUANTRAIN_INLINE uint32_t lowest_bits(const uint8_t* p) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(load(p), 7)));
  }
};
#if defined(__AVXVNNI__)
template <>
struct Ints<AvxVnni> : Ints<xsimd::fma3<xsimd::avx2>> {
  /// A product waits 5 cycles for the one before it, and two start in each.
  static constexpr int rows(int v) { return v == 1 ? 8 : v == 2 ? 6 : 4; }
  static constexpr bool kPairs = false;
  static constexpr int kSteps = 1;
  static QUANTRAIN_INLINE Int part(Int quad, int) { return quad; }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm256_dpbusd_avx_epi32(acc, x, w);
  }

  // Of the products of fewer bits that AVX2 has, only those of bits are faster than bytes here.
  static constexpr bool kNarrow = false;
  static constexpr bool kFields = false;
  static constexpr int kFewestBits = 96;
};
#endif

}  // namespace quantrain::kernels::simd
