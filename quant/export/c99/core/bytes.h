//@ check
#pragma once
#include "vectors.h"
//@ expand_pair
/* Writes the codes of two pixels in the order in which sums_4x2 reads them from columns. Does
   nothing if sums_4x2 reads x0 and x1 instead. */
#if defined(CORE_DSP) && !defined(CORE_MVE)
INLINE void expand_pair(uint32_t *columns, const uint8_t *x0, const uint8_t *x1, int32_t length) {
  int32_t k;
  for (k = 0; k < length; k += 4, columns += 4) {
    const uint32_t a = load_word(x0 + k), b = load_word(x1 + k);
    columns[0] = even_codes(a);
    columns[1] = odd_codes(a);
    columns[2] = even_codes(b);
    columns[3] = odd_codes(b);
  }
}
#elif defined(CORE_WIDENS_PAIRS)
/* As 16-bit numbers: four codes of one pixel, then four of the other, and so on. */
INLINE void expand_pair(uint32_t *columns, const uint8_t *x0, const uint8_t *x1, int32_t length) {
  int32_t k;
  for (k = 0; k < length; k += 4, columns += 4) {
    const uint32_t four[2] = {load_word(x0 + k), load_word(x1 + k)};
    codes_8 codes;
    halves_8 wide;
    memcpy(&codes, four, sizeof codes);
    wide = WIDEN_8(codes);
    memcpy(columns, &wide, sizeof wide);
  }
}
#else
INLINE void expand_pair(uint32_t *columns, const uint8_t *x0, const uint8_t *x1, int32_t length) {
  (void)columns;
  (void)x0;
  (void)x1;
  (void)length;
}
#endif
//@ sums_pair
/* sums[r] += w[r] * x0 and sums[4 + r] += w[r] * x1, for the four outputs of a group. MVE reads
   the codes x0 and x1 minus 128; the table of initial sums (START) makes up for this. */
#if defined(CORE_MVE)
INLINE void sums_4x2(const int8_t *w, const uint8_t *x0, const uint8_t *x1, const uint32_t *columns,
                     int32_t length, int32_t *sums) {
  int32_t a0 = sums[0], a1 = sums[1], a2 = sums[2], a3 = sums[3];
  int32_t b0 = sums[4], b1 = sums[5], b2 = sums[6], b3 = sums[7];
  int32_t left = length;
  (void)columns;
  do {
    const int8x16_t a = codes_less_128(x0, left), b = codes_less_128(x1, left);
    const int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16);
    const int8x16_t w2 = vld1q_s8(w + 32), w3 = vld1q_s8(w + 48);
    a0 = vmladavaq_s8(a0, a, w0);
    b0 = vmladavaq_s8(b0, b, w0);
    a1 = vmladavaq_s8(a1, a, w1);
    b1 = vmladavaq_s8(b1, b, w1);
    a2 = vmladavaq_s8(a2, a, w2);
    b2 = vmladavaq_s8(b2, b, w2);
    a3 = vmladavaq_s8(a3, a, w3);
    b3 = vmladavaq_s8(b3, b, w3);
    x0 += 16;
    x1 += 16;
    w += 64;
    left -= 16;
  } while (left > 0);
  sums[0] = a0;
  sums[1] = a1;
  sums[2] = a2;
  sums[3] = a3;
  sums[4] = b0;
  sums[5] = b1;
  sums[6] = b2;
  sums[7] = b3;
}
#elif defined(CORE_DSP)
INLINE void sums_2x2(const int8_t *w, const uint32_t *columns, int32_t length, int32_t *sums) {
  int32_t a0 = sums[0], a1 = sums[1], b0 = sums[4], b1 = sums[5];
  const uint32_t *const end = columns + length;
  do {
    const uint32_t w0 = load_word(w), w1 = load_word(w + 4);
    const uint32_t w0_even = even_weights(w0), w0_odd = odd_weights(w0);
    const uint32_t w1_even = even_weights(w1), w1_odd = odd_weights(w1);
    const uint32_t x0_even = columns[0], x0_odd = columns[1];
    const uint32_t x1_even = columns[2], x1_odd = columns[3];
    a0 = add_products(x0_even, w0_even, a0);
    a1 = add_products(x0_even, w1_even, a1);
    a0 = add_products(x0_odd, w0_odd, a0);
    a1 = add_products(x0_odd, w1_odd, a1);
    b0 = add_products(x1_even, w0_even, b0);
    b1 = add_products(x1_even, w1_even, b1);
    b0 = add_products(x1_odd, w0_odd, b0);
    b1 = add_products(x1_odd, w1_odd, b1);
    columns += 4;
    w += 16;
  } while (columns != end);
  sums[0] = a0;
  sums[1] = a1;
  sums[4] = b0;
  sums[5] = b1;
}
INLINE void sums_4x2(const int8_t *w, const uint8_t *x0, const uint8_t *x1, const uint32_t *columns,
                     int32_t length, int32_t *sums) {
  (void)x0;
  (void)x1;
  sums_2x2(w, columns, length, sums);
  sums_2x2(w + 8, columns, length, sums + 2);
}
#elif defined(CORE_WIDE)
INLINE void sums_4x2(const int8_t *w, const uint8_t *x0, const uint8_t *x1, const uint32_t *columns,
                     int32_t length, int32_t *sums) {
  quads a = NO_QUADS, b = NO_QUADS;
  int32_t k;
  (void)columns;
  (void)x0;
  (void)x1;
  for (k = 0; k < length; k += 4, w += 16) {
    const wide_weights block = widen(w);
#if defined(CORE_WIDENS_PAIRS)
    a = add_widened(a, block, columns + k);
    b = add_widened(b, block, columns + k + 2);
#else
    a = add_quads(a, block, x0 + k);
    b = add_quads(b, block, x1 + k);
#endif
  }
  join_quads(a, sums);
  join_quads(b, sums + 4);
}
#else
INLINE void sums_4x2(const int8_t *w, const uint8_t *x0, const uint8_t *x1, const uint32_t *columns,
                     int32_t length, int32_t *sums) {
  int32_t a0 = sums[0], a1 = sums[1], a2 = sums[2], a3 = sums[3];
  int32_t b0 = sums[4], b1 = sums[5], b2 = sums[6], b3 = sums[7];
  const uint8_t *const end = x0 + length;
  (void)columns;
#define TERM(k)                                         \
  {                                                     \
    const int32_t a = x0[k];                            \
    const int32_t b = x1[k];                            \
    const int8_t *const v = w + (k) / 4 * 16 + (k) % 4; \
    a0 += v[0] * a;                                     \
    b0 += v[0] * b;                                     \
    a1 += v[4] * a;                                     \
    b1 += v[4] * b;                                     \
    a2 += v[8] * a;                                     \
    b2 += v[8] * b;                                     \
    a3 += v[12] * a;                                    \
    b3 += v[12] * b;                                    \
  }
#define QUAD(k) \
  TERM(k)       \
  TERM((k) + 1) \
  TERM((k) + 2) \
  TERM((k) + 3)
  while (x0 != end && (length <= 16 || (end - x0) % 8 != 0)) {
    QUAD(0)
    x0 += 4;
    x1 += 4;
    w += 16;
  }
  while (x0 != end) {
    QUAD(0)
    QUAD(4)
    x0 += 8;
    x1 += 8;
    w += 32;
  }
#undef QUAD
#undef TERM
  sums[0] = a0;
  sums[1] = a1;
  sums[2] = a2;
  sums[3] = a3;
  sums[4] = b0;
  sums[5] = b1;
  sums[6] = b2;
  sums[7] = b3;
}
#endif
//@ sums_one
/* sums[r] += w[r] * x, for the four outputs of a group. MVE reads the codes x minus 128; the
   table of initial sums (START) makes up for this. */
#if defined(CORE_MVE)
INLINE void sums_4x1(const int8_t *w, const uint8_t *x, int32_t length, int32_t *sums) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  int32_t left = length;
  do {
    const int8x16_t codes = codes_less_128(x, left);
    s0 = vmladavaq_s8(s0, codes, vld1q_s8(w));
    s1 = vmladavaq_s8(s1, codes, vld1q_s8(w + 16));
    s2 = vmladavaq_s8(s2, codes, vld1q_s8(w + 32));
    s3 = vmladavaq_s8(s3, codes, vld1q_s8(w + 48));
    x += 16;
    w += 64;
    left -= 16;
  } while (left > 0);
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
#elif defined(CORE_DSP)
INLINE void sums_4x1(const int8_t *w, const uint8_t *x, int32_t length, int32_t *sums) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  const uint8_t *const end = x + length;
  do {
    const uint32_t codes = load_word(x);
    const uint32_t even = even_codes(codes), odd = odd_codes(codes);
    const uint32_t w0 = load_word(w), w1 = load_word(w + 4);
    const uint32_t w2 = load_word(w + 8), w3 = load_word(w + 12);
    s0 = add_products(even, even_weights(w0), s0);
    s0 = add_products(odd, odd_weights(w0), s0);
    s1 = add_products(even, even_weights(w1), s1);
    s1 = add_products(odd, odd_weights(w1), s1);
    s2 = add_products(even, even_weights(w2), s2);
    s2 = add_products(odd, odd_weights(w2), s2);
    s3 = add_products(even, even_weights(w3), s3);
    s3 = add_products(odd, odd_weights(w3), s3);
    x += 4;
    w += 16;
  } while (x != end);
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
#elif defined(CORE_WIDE)
INLINE void sums_4x1(const int8_t *w, const uint8_t *x, int32_t length, int32_t *sums) {
  quads s = NO_QUADS;
  int32_t k;
  for (k = 0; k < length; k += 4, w += 16) s = add_quads(s, widen(w), x + k);
  join_quads(s, sums);
}
#else
INLINE void sums_4x1(const int8_t *w, const uint8_t *x, int32_t length, int32_t *sums) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  const uint8_t *const end = x + length;
#define TERM(k)                               \
  {                                           \
    const int32_t a = x[k];                   \
    s0 += w[(k) / 4 * 16 + (k) % 4] * a;      \
    s1 += w[(k) / 4 * 16 + (k) % 4 + 4] * a;  \
    s2 += w[(k) / 4 * 16 + (k) % 4 + 8] * a;  \
    s3 += w[(k) / 4 * 16 + (k) % 4 + 12] * a; \
  }
#define QUAD(k) \
  TERM(k)       \
  TERM((k) + 1) \
  TERM((k) + 2) \
  TERM((k) + 3)
  if (length % 8 != 0) {
    QUAD(0)
    x += 4;
    w += 16;
  }
  while (x != end) {
    QUAD(0)
    QUAD(4)
    x += 8;
    w += 32;
  }
#undef QUAD
#undef TERM
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
#endif
//@ sum_row
/* sum + w * x, for an output that is not in a group. */
INLINE int32_t sum_row(const int8_t *w, const uint8_t *x, int32_t length, int32_t sum) {
  const uint8_t *const end = x + length;
  do {
#if defined(CORE_DSP)
    const uint32_t weights = load_word(w), codes = load_word(x);
    sum = add_products(even_codes(codes), even_weights(weights), sum);
    sum = add_products(odd_codes(codes), odd_weights(weights), sum);
#else
    sum +=
        (int32_t)w[0] * x[0] + (int32_t)w[1] * x[1] + (int32_t)w[2] * x[2] + (int32_t)w[3] * x[3];
#endif
    x += 4;
    w += 4;
  } while (x != end);
  return sum;
}
