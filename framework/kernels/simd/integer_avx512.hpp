#pragma once

#include <immintrin.h>

#include "framework/kernels/simd/integer_avx2.hpp"
#include "framework/kernels/simd/integer_sse2.hpp"

namespace quantrain::kernels::simd {

template <>
struct Ints<xsimd::avx512bw> : AnyInts<xsimd::avx512bw> {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kMaxPanel = 4;
  static constexpr int kShortPanel = 2;
  static constexpr int rows(int v) { return v == 4 ? 6 : 8; }

  /// A mask as a number, in a general register. Otherwise, g++ 12 would keep the number in a mask
  /// register. Around a call (the thread sanitizer adds calls), g++ 12 saves two bytes of a mask
  /// register but reads back four. A general register is saved and read back whole.
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
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  static QUANTRAIN_INLINE Int bit_and(Int a, Int b) { return _mm512_and_si512(a, b); }
  static QUANTRAIN_INLINE Int sub8(Int a, Int b) { return _mm512_sub_epi8(a, b); }
  using Shift = Int;
  static QUANTRAIN_INLINE Shift shift_by(int32_t bits) { return set1(bits); }
  static QUANTRAIN_INLINE Int srl(Int v, Shift bits) { return _mm512_srlv_epi32(v, bits); }
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Clamp& clamp) {
    v = _mm512_max_epi32(v, set1(clamp.lo));
    v = _mm512_min_epi32(v, set1(clamp.hi));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
  }
  static QUANTRAIN_INLINE uint32_t first(int64_t count) {
    return count >= 16 ? 0xffffu : count <= 0 ? 0 : (1u << count) - 1;
  }
  /// Narrows four vectors to one: 16 bytes of a, then 16 of b, of c and of d, clamped.
  static QUANTRAIN_INLINE Int pack_codes(Int a, Int b, Int c, Int d, const Clamp& clamp) {
    const Int bytes = _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    const Int clamped =
        _mm512_min_epu8(_mm512_max_epu8(bytes, _mm512_set1_epi8(static_cast<char>(clamp.lo))),
                        _mm512_set1_epi8(static_cast<char>(clamp.hi)));
    return transpose_words(clamped);
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
    repeat<R * V % 4>([&](auto last) QUANTRAIN_INLINE {
      constexpr int i = R * V / 4 * 4 + last;
      store_codes(at(i), tile[i / V][i % V], clamp);
    });
  }
  /// The masks of a tile's columns, computed once for all rows.
  template <int V>
  struct Columns {
    uint32_t first[V];
    QUANTRAIN_INLINE explicit Columns(int64_t columns) {
      repeat<V>([&](auto v) QUANTRAIN_INLINE { first[v] = Ints::first(columns - v * kLanes); });
    }
    QUANTRAIN_INLINE __mmask16 mask(int v) const { return static_cast<__mmask16>(first[v]); }
  };
  template <int R, int V>
  static QUANTRAIN_INLINE void store_columns(int32_t* p,
                                             int64_t stride,
                                             const Int (&tile)[R][V],
                                             int64_t columns) {
    const Columns<V> few(columns);
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      repeat<V>([&](auto v) QUANTRAIN_INLINE {
        _mm512_mask_storeu_epi32(p + r * stride + v * kLanes, few.mask(v), tile[r][v]);
      });
    });
  }
  template <int R, int V>
  static QUANTRAIN_INLINE void store_columns(
      uint8_t* p, int64_t stride, const Int (&tile)[R][V], const Clamp& clamp, int64_t columns) {
    const Columns<V> few(columns);
    const auto put = [&](int i, __m128i bytes) QUANTRAIN_INLINE {
      _mm_mask_storeu_epi8(p + i / V * stride + i % V * kLanes, few.mask(i % V), bytes);
    };
    repeat<R * V / 4>([&](auto group) QUANTRAIN_INLINE {
      constexpr int i = 4 * group;
      const Int bytes = pack_codes(tile[i / V][i % V],
                                   tile[(i + 1) / V][(i + 1) % V],
                                   tile[(i + 2) / V][(i + 2) % V],
                                   tile[(i + 3) / V][(i + 3) % V],
                                   clamp);
      put(i, _mm512_castsi512_si128(bytes));
      put(i + 1, _mm512_extracti32x4_epi32(bytes, 1));
      put(i + 2, _mm512_extracti32x4_epi32(bytes, 2));
      put(i + 3, _mm512_extracti32x4_epi32(bytes, 3));
    });
    repeat<R * V % 4>([&](auto last) QUANTRAIN_INLINE {
      constexpr int i = R * V / 4 * 4 + last;
      const Int v = tile[i / V][i % V];
      put(i,
          _mm512_cvtepi32_epi8(
              _mm512_min_epi32(_mm512_max_epi32(v, set1(clamp.lo)), set1(clamp.hi))));
    });
  }
  static QUANTRAIN_INLINE uint32_t bits_between(Int v, int32_t lo, int32_t hi) {
    return bits(_mm512_mask_cmple_epi32_mask(_mm512_cmpge_epi32_mask(v, set1(lo)), v, set1(hi)));
  }

  static QUANTRAIN_INLINE Int set1_64(int64_t v) { return _mm512_set1_epi64(v); }
  static QUANTRAIN_INLINE Int odd(Int v) {
    // A shuffle runs beside multiplications; a shift of 512 bits does not.
    return _mm512_shuffle_epi32(v, _MM_PERM_DDBB);
  }
  static QUANTRAIN_INLINE Int mul(Int a, Int b) { return _mm512_mul_epi32(a, b); }
  static QUANTRAIN_INLINE Int mul_unsigned(Int a, Int b) { return _mm512_mul_epu32(a, b); }
  static QUANTRAIN_INLINE Int add64(Int a, Int b) { return _mm512_add_epi64(a, b); }
  static QUANTRAIN_INLINE Int srl64(Int v, int count) {
    return _mm512_srl_epi64(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int sra(Int v, int count) {
    return _mm512_sra_epi32(v, _mm_cvtsi32_si128(count));
  }
  static QUANTRAIN_INLINE Int sllv(Int v, Int counts) { return _mm512_sllv_epi32(v, counts); }
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
  static QUANTRAIN_INLINE Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return _mm512_div_ps(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static QUANTRAIN_INLINE float smallest(Float v) { return _mm512_reduce_min_ps(v); }
  static QUANTRAIN_INLINE float largest(Float v) { return _mm512_reduce_max_ps(v); }
  static QUANTRAIN_INLINE bool any(Int v) { return _mm512_test_epi32_mask(v, v) != 0; }
  static QUANTRAIN_INLINE Int as_ints(Float v) { return _mm512_castps_si512(v); }
  static QUANTRAIN_INLINE Int not_finite(Float v) { return as_ints(_mm512_sub_ps(v, v)); }
  static QUANTRAIN_INLINE Int round(Float v) { return _mm512_cvtps_epi32(v); }
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    return _mm512_maskz_mov_ps(static_cast<__mmask16>(bits), v);
  }

  /// The operations for fewer than kBytes bytes of data.
  using Narrow = Ints<xsimd::sse2>;
  static constexpr int kBytes = 64;
  static QUANTRAIN_INLINE Int max_u8(Int a, Int b) { return _mm512_max_epu8(a, b); }
  /// Transposes the 4 x 4 words of 4 bytes in v. Packing and unpacking work within 128 bits. The
  /// transpose makes their results consecutive.
  static QUANTRAIN_INLINE Int transpose_words(Int v) {
    const Int order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_epi32(order, v);
  }
  static QUANTRAIN_INLINE void interleave(const uint8_t* const (&rows)[4], int64_t i, uint8_t* to) {
    const Int a = transpose_words(load(rows[0] + i));
    const Int b = transpose_words(load(rows[1] + i));
    const Int c = transpose_words(load(rows[2] + i));
    const Int d = transpose_words(load(rows[3] + i));
    const Int ab_low = _mm512_unpacklo_epi8(a, b);
    const Int ab_high = _mm512_unpackhi_epi8(a, b);
    const Int cd_low = _mm512_unpacklo_epi8(c, d);
    const Int cd_high = _mm512_unpackhi_epi8(c, d);
    store(to, _mm512_unpacklo_epi16(ab_low, cd_low));
    store(to + 64, _mm512_unpackhi_epi16(ab_low, cd_low));
    store(to + 128, _mm512_unpacklo_epi16(ab_high, cd_high));
    store(to + 192, _mm512_unpackhi_epi16(ab_high, cd_high));
  }

  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int part(Int quad, int step) {
    return step == 0 ? _mm512_and_si512(quad, _mm512_set1_epi16(0xff)) : _mm512_srli_epi16(quad, 8);
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(x, w));
  }

  // Products of fewer bits without VNNI are those of AVX2, which keeps programs small.
  using Few = xsimd::fma3<xsimd::avx2>;
  static constexpr bool kNarrow = true;
  static constexpr bool kFields = true;
  /// Bit i of the result is bit 0 of byte i, for kBytes bytes.
  static QUANTRAIN_INLINE uint64_t lowest_bits(const uint8_t* p) {
    return _mm512_test_epi8_mask(load(p), _mm512_set1_epi8(1));
  }
};
#if defined(__AVX512VNNI__)
template <>
struct Ints<Avx512Vnni> : Ints<xsimd::avx512bw> {
  static constexpr bool kPairs = false;
  static constexpr int kSteps = 1;
  static QUANTRAIN_INLINE Int part(Int quad, int) { return quad; }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) { return _mm512_dpbusd_epi32(acc, x, w); }

  using Few = Avx512Vnni;
  static constexpr int kFewPanel = 4;
  static constexpr bool kNarrow = false;
  /// VPOPCNTDQ counts ones. Some processors have VNNI without it. There, counting by shuffles
  /// would take as long as dot products of bytes. The instruction is written as text, because these
  /// files are compiled without VPOPCNTDQ.
  static QUANTRAIN_INLINE bool counts_bits() { return __builtin_cpu_supports("avx512vpopcntdq"); }
  static constexpr int kCountedWords = 0;
  static constexpr int kFewestBits = 96;
  static QUANTRAIN_INLINE Int count(Int counts, Int v) {
    Int ones;
    __asm__("vpopcntd %1, %0" : "=v"(ones) : "v"(v));
    return add(counts, ones);
  }

  /// Bytes of `mask` that are 0 are not read; they become 0.
  static QUANTRAIN_INLINE Int load_bytes(uint64_t mask, const void* p) {
    return _mm512_maskz_loadu_epi8(mask, p);
  }
};
#endif
#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // Clang 14
template <>
struct Ints<Amx> : Ints<Avx512Vnni> {};
#endif

}  // namespace quantrain::kernels::simd
