#pragma once

#include <immintrin.h>

#include "framework/kernels/simd/integer_any.hpp"

namespace quantrain::kernels::simd {

template <>
struct Ints<xsimd::sse2> : AnyInts<xsimd::sse2> {
  using Int = __m128i;
  using Float = __m128;
  static constexpr int kLanes = 4;
  static constexpr bool kManyRegisters = false;
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
  static QUANTRAIN_INLINE Int four_bytes(const void* p) {
    int32_t bytes;
    __builtin_memcpy(&bytes, p, 4);
    return _mm_cvtsi32_si128(bytes);
  }
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return _mm_add_epi32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return _mm_or_si128(a, b); }
  static QUANTRAIN_INLINE Int bit_and(Int a, Int b) { return _mm_and_si128(a, b); }
  static QUANTRAIN_INLINE Int sub8(Int a, Int b) { return _mm_sub_epi8(a, b); }
  using Shift = Int;
  static QUANTRAIN_INLINE Shift shift_by(int32_t bits) { return _mm_cvtsi32_si128(bits); }
  static QUANTRAIN_INLINE Int srl(Int v, Shift bits) { return _mm_srl_epi32(v, bits); }
  /// Clamps v and stores lane i as byte i of p.
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Clamp& clamp) {
    v = _mm_packs_epi32(v, v);
    v = _mm_max_epi16(v, _mm_set1_epi16(static_cast<int16_t>(clamp.lo)));
    v = _mm_min_epi16(v, _mm_set1_epi16(static_cast<int16_t>(clamp.hi)));
    v = _mm_and_si128(v, _mm_set1_epi16(0xff));  // keeps the low byte, also of negative codes
    const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(v, v));
    __builtin_memcpy(p, &bytes, 4);
  }
  /// Bit i of the result is set if lo <= lane i <= hi.
  static QUANTRAIN_INLINE uint32_t bits_between(Int v, int32_t lo, int32_t hi) {
    const Int out = _mm_or_si128(_mm_cmpgt_epi32(set1(lo), v), _mm_cmpgt_epi32(v, set1(hi)));
    return ~static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(out))) & 0xfu;
  }

  // 64-bit products of the even lanes. odd() moves the odd lanes to the places of the even lanes.
  // The odd lanes of its result are unspecified.
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
  static QUANTRAIN_INLINE Float mul(Float a, Float b) { return _mm_mul_ps(a, b); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return _mm_div_ps(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return _mm_min_ps(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return _mm_max_ps(a, b); }
  static QUANTRAIN_INLINE float smallest(Float v) {
    const Float a = _mm_min_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_min_ss(a, _mm_shuffle_ps(a, a, 1)));
  }
  static QUANTRAIN_INLINE float largest(Float v) {
    const Float a = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
  }
  static QUANTRAIN_INLINE bool any(Int v) {
    return _mm_movemask_epi8(_mm_cmpeq_epi32(v, _mm_setzero_si128())) != 0xffff;
  }
  /// The bits of the floats.
  static QUANTRAIN_INLINE Int as_ints(Float v) { return _mm_castps_si128(v); }
  /// 0 where v is finite.
  static QUANTRAIN_INLINE Int not_finite(Float v) { return as_ints(_mm_sub_ps(v, v)); }
  /// Rounds to the nearest integer, ties to even. |v| < 2^31.
  static QUANTRAIN_INLINE Int round(Float v) { return _mm_cvtps_epi32(v); }
  /// Lane i of v if bit i is set, else 0.
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    const Int lane = _mm_set_epi32(8, 4, 2, 1);
    const Int set = _mm_cmpeq_epi32(_mm_and_si128(set1(static_cast<int32_t>(bits)), lane), lane);
    return _mm_and_ps(_mm_castsi128_ps(set), v);
  }

  static constexpr int kBytes = 16;
  static QUANTRAIN_INLINE Int max_u8(Int a, Int b) { return _mm_max_epu8(a, b); }
  /// Bit i of the result is bit 0 of byte i, for kBytes bytes.
  static QUANTRAIN_INLINE uint16_t lowest_bits(const uint8_t* p) {
    return static_cast<uint16_t>(_mm_movemask_epi8(_mm_slli_epi16(load(p), 7)));
  }
  /// to[4 e + k] = rows[k][i + e] for e < kBytes.
  static QUANTRAIN_INLINE void interleave(const uint8_t* const (&rows)[4], int64_t i, uint8_t* to) {
    const Int a = load(rows[0] + i);
    const Int b = load(rows[1] + i);
    const Int c = load(rows[2] + i);
    const Int d = load(rows[3] + i);
    const Int ab_low = _mm_unpacklo_epi8(a, b);
    const Int ab_high = _mm_unpackhi_epi8(a, b);
    const Int cd_low = _mm_unpacklo_epi8(c, d);
    const Int cd_high = _mm_unpackhi_epi8(c, d);
    store(to, _mm_unpacklo_epi16(ab_low, cd_low));
    store(to + 16, _mm_unpackhi_epi16(ab_low, cd_low));
    store(to + 32, _mm_unpacklo_epi16(ab_high, cd_high));
    store(to + 48, _mm_unpackhi_epi16(ab_high, cd_high));
  }

  // Dot products of 4 bytes, in two steps of 2 bytes each. part() selects the bytes of a step.
  // Panels hold int16 (PanelLayout::pairs in params.hpp).
  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int part(Int quad, int step) {
    return step == 0 ? _mm_and_si128(quad, _mm_set1_epi16(0xff)) : _mm_srli_epi16(quad, 8);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm_add_epi32(acc, _mm_madd_epi16(x, w));
  }
};

}  // namespace quantrain::kernels::simd
