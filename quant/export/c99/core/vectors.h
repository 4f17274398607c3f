//@ check
#pragma once
#include "core.h"
//@ groups
/* ROWS_n encloses n weights of each of the four rows of a group. The rows take turns: four weights
   of the first row, four of the second, and so on. Without MVE, the table keeps this order. For
   MVE, the weights are reordered row by row, and each row is padded with zeros to sixteen. */
#if defined(CORE_MVE)
#define ROWS_4(...) ROWS_OF_4(__VA_ARGS__)
#define ROWS_8(...) ROWS_OF_8(__VA_ARGS__)
#define ROWS_12(...) ROWS_OF_12(__VA_ARGS__)
#define ROWS_16(...) ROWS_OF_16(__VA_ARGS__)
#define ROWS_OF_4(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3)                 \
  a0, a1, a2, a3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b0, b1, b2, b3, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
      0, 0, 0, c0, c1, c2, c3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, d0, d1, d2, d3, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0
#define ROWS_OF_8(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3, a4, a5, a6, a7,  \
                  b4, b5, b6, b7, c4, c5, c6, c7, d4, d5, d6, d7)                                  \
  a0, a1, a2, a3, a4, a5, a6, a7, 0, 0, 0, 0, 0, 0, 0, 0, b0, b1, b2, b3, b4, b5, b6, b7, 0, 0, 0, \
      0, 0, 0, 0, 0, c0, c1, c2, c3, c4, c5, c6, c7, 0, 0, 0, 0, 0, 0, 0, 0, d0, d1, d2, d3, d4,   \
      d5, d6, d7, 0, 0, 0, 0, 0, 0, 0, 0
#define ROWS_OF_12(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3, a4, a5, a6, a7, \
                   b4, b5, b6, b7, c4, c5, c6, c7, d4, d5, d6, d7, a8, a9, aa, ab, b8, b9, ba, bb, \
                   c8, c9, ca, cb, d8, d9, da, db)                                                 \
  a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, 0, 0, 0, 0, b0, b1, b2, b3, b4, b5, b6, b7, b8,  \
      b9, ba, bb, 0, 0, 0, 0, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ca, cb, 0, 0, 0, 0, d0, d1,  \
      d2, d3, d4, d5, d6, d7, d8, d9, da, db, 0, 0, 0, 0
#define ROWS_OF_16(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3, a4, a5, a6, a7, \
                   b4, b5, b6, b7, c4, c5, c6, c7, d4, d5, d6, d7, a8, a9, aa, ab, b8, b9, ba, bb, \
                   c8, c9, ca, cb, d8, d9, da, db, ac, ad, ae, af, bc, bd, be, bf, cc, cd, ce, cf, \
                   dc, dd, de, df)                                                                 \
  a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, ac, ad, ae, af, b0, b1, b2, b3, b4, b5, b6, b7,  \
      b8, b9, ba, bb, bc, bd, be, bf, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ca, cb, cc, cd, ce,  \
      cf, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, da, db, dc, dd, de, df
#define GROUP_ROW(length) (((length) + 15) / 16 * 16)
#define START(sum, sum_of_codes_less_128) (sum_of_codes_less_128)
#else
#define ROWS_4(...) __VA_ARGS__
#define ROWS_8(...) __VA_ARGS__
#define ROWS_12(...) __VA_ARGS__
#define ROWS_16(...) __VA_ARGS__
#define GROUP_ROW(length) (length)
#define START(sum, sum_of_codes_less_128) (sum)
#endif
//@ vectors
#if defined(CORE_MVE)
/* Sixteen codes, each minus 128. If fewer than sixteen codes are left, reads only those that are
   left. The weights of the other lanes are 0. */
INLINE int8x16_t codes_less_128(const uint8_t *x, int32_t left) {
  const uint8x16_t codes = left >= 16 ? vld1q_u8(x) : vld1q_z_u8(x, vctp8q((uint32_t)left));
  return vreinterpretq_s8_u8(veorq_u8(codes, vdupq_n_u8(0x80)));
}
#endif
#if defined(CORE_DSP)
/* The two codes or weights in the even bytes, or in the odd bytes, of a word, as a pair of 16-bit
   numbers. */
INLINE uint32_t even_codes(uint32_t word) {
  uint32_t pair;
  __asm__("uxtb16 %0, %1" : "=r"(pair) : "r"(word));
  return pair;
}
INLINE uint32_t odd_codes(uint32_t word) {
  uint32_t pair;
  __asm__("uxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
  return pair;
}
INLINE uint32_t even_weights(uint32_t word) {
  uint32_t pair;
  __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
  return pair;
}
INLINE uint32_t odd_weights(uint32_t word) {
  uint32_t pair;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
  return pair;
}
/* sum + the four bytes of a word. */
INLINE int32_t add_bytes_of(uint32_t word, int32_t sum) {
  int32_t result;
  __asm__("usada8 %0, %1, %2, %3" : "=r"(result) : "r"(word), "r"(0), "r"(sum));
  return result;
}
/* sum + the products of both halves. */
INLINE int32_t add_products(uint32_t x, uint32_t w, int32_t sum) {
  int32_t result;
  __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(x), "r"(w), "r"(sum));
  return result;
}
/* sum + the product of the low halves, or of the high halves. */
INLINE int32_t add_low_product(uint32_t x, uint32_t w, int32_t sum) {
  int32_t result;
  __asm__("smlabb %0, %1, %2, %3" : "=r"(result) : "r"(x), "r"(w), "r"(sum));
  return result;
}
INLINE int32_t add_high_product(uint32_t x, uint32_t w, int32_t sum) {
  int32_t result;
  __asm__("smlatt %0, %1, %2, %3" : "=r"(result) : "r"(x), "r"(w), "r"(sum));
  return result;
}
#elif defined(CORE_WIDE)
/* add_quads multiplies sixteen weights, four for each output of a group, by four codes. `quads`
   holds partial sums of the four outputs, and join_quads adds up those of each output. With
   CORE_BLOCKS, there are enough registers to compute a block, which is four groups, together. */
typedef int8_t sixteen_weights __attribute__((vector_size(16)));
typedef uint8_t codes_8 __attribute__((vector_size(8)));
typedef uint8_t codes_16 __attribute__((vector_size(16)));
typedef int16_t halves_8 __attribute__((vector_size(16)));
typedef int32_t words_4 __attribute__((vector_size(16)));
typedef long long longs_2 __attribute__((vector_size(16)));
#if defined(__AVX2__)
typedef char bytes_16 __attribute__((vector_size(16)));
typedef long long longs_4 __attribute__((vector_size(32)));
#endif
INLINE codes_16 repeat_codes(const uint8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return (codes_16)(words_4){four, four, four, four};
}
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
typedef words_4 wide_weights;
typedef words_4 quads;
#define NO_QUADS \
  { 0 }
#define CORE_BLOCKS 1
INLINE wide_weights widen(const int8_t *w) {
  wide_weights words;
  memcpy(&words, w, sizeof words);
  return words;
}
INLINE quads add_quads(quads sum, wide_weights w, const uint8_t *x) {
#if defined(__clang__)
  return __builtin_ia32_vpdpbusd128(sum, (words_4)repeat_codes(x), w);
#else
  return __builtin_ia32_vpdpbusd_v4si(sum, (words_4)repeat_codes(x), w);
#endif
}
INLINE void join_quads(quads sum, int32_t *sums) {
  int32_t r;
  for (r = 0; r < 4; ++r) sums[r] += sum[r];
}
#elif defined(__AVX2__)
typedef int16_t wide_weights __attribute__((vector_size(32)));
typedef int32_t quads __attribute__((vector_size(32)));
#define NO_QUADS \
  { 0 }
#define CORE_BLOCKS 1
/* GCC's __builtin_convertvector converts each half of a vector separately. */
#if defined(__clang__)
#define WIDEN_WEIGHTS(bytes) __builtin_convertvector(bytes, wide_weights)
#define WIDEN_CODES(bytes) __builtin_convertvector(bytes, wide_weights)
#define WIDEN_8(bytes) __builtin_convertvector(bytes, halves_8)
#else
#define WIDEN_WEIGHTS(bytes) (wide_weights) __builtin_ia32_pmovsxbw256((bytes_16)(bytes))
#define WIDEN_CODES(bytes) (wide_weights) __builtin_ia32_pmovzxbw256((bytes_16)(bytes))
#define WIDEN_8(bytes) \
  (halves_8) __builtin_ia32_pmovzxbw128((bytes_16)(longs_2){(long long)(bytes), 0})
#endif
INLINE wide_weights widen(const int8_t *w) {
  sixteen_weights bytes;
  memcpy(&bytes, w, sizeof bytes);
  return WIDEN_WEIGHTS(bytes);
}
INLINE quads add_quads(quads sum, wide_weights w, const uint8_t *x) {
  return sum + (quads)__builtin_ia32_pmaddwd256(WIDEN_CODES(repeat_codes(x)), w);
}
/* expand_pair widens the codes of two pixels once for all groups. add_widened reads four of these
   codes. */
#define CORE_WIDENS_PAIRS 1
INLINE quads add_widened(quads sum, wide_weights w, const uint32_t *x) {
  int64_t four;
  memcpy(&four, x, sizeof four);
  return sum + (quads)__builtin_ia32_pmaddwd256((wide_weights)(longs_4){four, four, four, four}, w);
}
INLINE void join_quads(quads sum, int32_t *sums) {
  int32_t r;
  for (r = 0; r < 4; ++r) sums[r] += sum[2 * r] + sum[2 * r + 1];
}
#elif defined(__SSE2__) || defined(__wasm_simd128__)
#if defined(__SSE2__)
#define ADD_PAIRS(codes, weights) (words_4) __builtin_ia32_pmaddwd128(codes, weights)
#else
#define ADD_PAIRS(codes, weights) (words_4) __builtin_wasm_dot_s_i32x4_i16x8(codes, weights)
#endif
typedef int8_t eight_weights __attribute__((vector_size(8)));
typedef struct {
  halves_8 low, high;
} wide_weights;
typedef struct {
  words_4 low, high;
} quads;
#define NO_QUADS \
  {              \
    {0}, { 0 }   \
  }
INLINE wide_weights widen(const int8_t *w) {
  eight_weights low, high;
  wide_weights wide;
  memcpy(&low, w, sizeof low);
  memcpy(&high, w + 8, sizeof high);
  wide.low = __builtin_convertvector(low, halves_8);
  wide.high = __builtin_convertvector(high, halves_8);
  return wide;
}
INLINE quads add_halves(quads sum, wide_weights w, halves_8 codes) {
  sum.low += ADD_PAIRS(codes, w.low);
  sum.high += ADD_PAIRS(codes, w.high);
  return sum;
}
INLINE quads add_quads(quads sum, wide_weights w, const uint8_t *x) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return add_halves(sum, w,
                    __builtin_convertvector(
                        (codes_8)(int32_t __attribute__((vector_size(8)))){four, four}, halves_8));
}
/* As with AVX2, expand_pair widens the codes once for all groups. */
#define WIDEN_8(bytes) __builtin_convertvector(bytes, halves_8)
#define CORE_WIDENS_PAIRS 1
INLINE quads add_widened(quads sum, wide_weights w, const uint32_t *x) {
  int64_t four;
  memcpy(&four, x, sizeof four);
  return add_halves(sum, w, (halves_8)(longs_2){four, four});
}
INLINE void join_quads(quads sum, int32_t *sums) {
  sums[0] += sum.low[0] + sum.low[1];
  sums[1] += sum.low[2] + sum.low[3];
  sums[2] += sum.high[0] + sum.high[1];
  sums[3] += sum.high[2] + sum.high[3];
}
#else
typedef int16_t wide_weights __attribute__((vector_size(32)));
typedef int32_t quads __attribute__((vector_size(64)));
#define NO_QUADS \
  { 0 }
INLINE wide_weights widen(const int8_t *w) {
  sixteen_weights bytes;
  memcpy(&bytes, w, sizeof bytes);
  return __builtin_convertvector(bytes, wide_weights);
}
/* The product of a code and a weight fits in 16 bits. */
INLINE quads add_quads(quads sum, wide_weights w, const uint8_t *x) {
  const wide_weights codes = __builtin_convertvector(repeat_codes(x), wide_weights);
  return sum + __builtin_convertvector(codes * w, quads);
}
INLINE void join_quads(quads sum, int32_t *sums) {
  int32_t r;
  for (r = 0; r < 4; ++r) sums[r] += sum[4 * r] + sum[4 * r + 1] + sum[4 * r + 2] + sum[4 * r + 3];
}
#endif
#endif
