//@ check
#pragma once
#include "vectors.h"
//@ sum_codes
INLINE int32_t sum_codes(const uint8_t *x, int32_t length) {
  int32_t sum = 0, k;
  for (k = 0; k < length; ++k) sum += x[k];
  return sum;
}
//@ field
/* Packed weights have `bits` bits. A weight w is stored as w + 2^(bits - 1), which is not negative.
   A word holds 32 / bits weights of a row, one in each field of `bits` bits. Their order lets a
   mask extract two weights that are 16 bits apart in the word: first weights 0 and 2, then 1 and 3,
   4 and 6, 5 and 7, and so on. The function gives the index of the weight in field n. */
INLINE int32_t field_position(int32_t n, int32_t bits) {
  const int32_t half = 16 / bits;
  return n % half / 2 * 4 + n % 2 + (n >= half ? 2 : 0);
}
#if defined(CORE_PLAIN)
/* FIELD(n, field_position(n, bits)) for all fields of a word. */
#define EACH_FIELD \
  if (bits == 4) { \
    FIELD(0, 0)    \
    FIELD(1, 1)    \
    FIELD(2, 4)    \
    FIELD(3, 5)    \
    FIELD(4, 2)    \
    FIELD(5, 3)    \
    FIELD(6, 6)    \
    FIELD(7, 7)    \
  } else {         \
    FIELD(0, 0)    \
    FIELD(1, 1)    \
    FIELD(2, 4)    \
    FIELD(3, 5)    \
    FIELD(4, 8)    \
    FIELD(5, 9)    \
    FIELD(6, 12)   \
    FIELD(7, 13)   \
    FIELD(8, 2)    \
    FIELD(9, 3)    \
    FIELD(10, 6)   \
    FIELD(11, 7)   \
    FIELD(12, 10)  \
    FIELD(13, 11)  \
    FIELD(14, 14)  \
    FIELD(15, 15)  \
  }
#endif
//@ take_fields
#if defined(CORE_WIDE)
/* Extracts the field at bit `shift` of each byte of four words. */
INLINE wide_weights take_fields(const uint32_t *w, int32_t shift, int32_t bits) {
  const int8_t mask = (int8_t)(bits == 4 ? 15 : 3);
  codes_16 bytes;
  sixteen_weights fields;
  memcpy(&bytes, w, sizeof bytes);
  fields = (sixteen_weights)(bytes >> (uint8_t)shift) & mask;
  return widen((const int8_t *)&fields);
}
/* Writes the codes that belong to one word of weights, in the order in which take_fields extracts
   these weights. */
INLINE void order_codes(uint8_t *to, const uint8_t *x, int32_t bits) {
  const uint32_t even = 0x00ff00ff;
  int32_t i;
  for (i = 0; i < 16 / bits; i += 4, to += 8) {
    const uint32_t a = load_word(x + i), b = load_word(x + 16 / bits + i);
    const uint32_t four[2] = {(a & even) | (b & even) << 8, (a >> 8 & even) | (b & ~even)};
    memcpy(to, four, sizeof four);
  }
}
#endif
//@ packed_pair
#if defined(CORE_DSP)
INLINE void expand_pair_packed(uint32_t *columns, const uint8_t *x0, const uint8_t *x1,
                               int32_t length, int32_t bits, int32_t *total) {
  int32_t k, s0 = 0, s1 = 0;
  (void)bits;
  for (k = 0; k < length; k += 4, columns += 4) {
    const uint32_t a = load_word(x0 + k), b = load_word(x1 + k);
    const uint32_t a_even = even_codes(a), a_odd = odd_codes(a);
    const uint32_t b_even = even_codes(b), b_odd = odd_codes(b);
    columns[0] = a_even;
    columns[1] = a_odd;
    columns[2] = b_even;
    columns[3] = b_odd;
    s0 = add_products(a_even, 0x00010001, s0);
    s0 = add_products(a_odd, 0x00010001, s0);
    s1 = add_products(b_even, 0x00010001, s1);
    s1 = add_products(b_odd, 0x00010001, s1);
  }
  total[0] = s0;
  total[1] = s1;
}
INLINE void sums_2x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                            int32_t bits, int32_t *sums) {
  uint32_t mask = bits == 4 ? 0x000f000f : 0x00030003;
  int32_t a0 = sums[0], a1 = sums[1], b0 = sums[4], b1 = sums[5];
  const uint32_t *const end = columns + length;
  KEEP_IN_REGISTER(mask);
  do {
    const uint32_t w0 = w[0], w1 = w[1];
#define PAIRS(n)                                                                   \
  {                                                                                \
    const uint32_t p0 = (w0 >> ((n)*bits)) & mask, p1 = (w1 >> ((n)*bits)) & mask; \
    const uint32_t x0 = columns[(n) / 2 * 4 + (n) % 2];                            \
    const uint32_t x1 = columns[(n) / 2 * 4 + (n) % 2 + 2];                        \
    a0 = add_products(x0, p0, a0);                                                 \
    a1 = add_products(x0, p1, a1);                                                 \
    b0 = add_products(x1, p0, b0);                                                 \
    b1 = add_products(x1, p1, b1);                                                 \
    KEEP_ORDER;                                                                    \
  }
    PAIRS(0)
    PAIRS(1)
    PAIRS(2)
    PAIRS(3)
    if (bits == 2) {
      PAIRS(4)
      PAIRS(5)
      PAIRS(6)
      PAIRS(7)
    }
#undef PAIRS
    columns += 32 / bits;
    w += 4;
  } while (columns != end);
  sums[0] = a0;
  sums[1] = a1;
  sums[4] = b0;
  sums[5] = b1;
}
INLINE void sums_4x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                            int32_t bits, int32_t *sums) {
  sums_2x2_packed(w, columns, length, bits, sums);
  sums_2x2_packed(w + 2, columns, length, bits, sums + 2);
}
#elif defined(CORE_WIDE)
INLINE void expand_pair_packed(uint32_t *columns, const uint8_t *x0, const uint8_t *x1,
                               int32_t length, int32_t bits, int32_t *total) {
  uint8_t *const to = (uint8_t *)columns;
  int32_t k;
  for (k = 0; k < length; k += 32 / bits) {
    order_codes(to + k, x0 + k, bits);
    order_codes(to + length + k, x1 + k, bits);
  }
  total[0] = total[1] = 0;
  for (k = 0; k < length; ++k) {
    total[0] += x0[k];
    total[1] += x1[k];
  }
}
INLINE void sums_4x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                            int32_t bits, int32_t *sums) {
  const uint8_t *const from = (const uint8_t *)columns;
  quads a = NO_QUADS, b = NO_QUADS;
  int32_t k, f;
  for (k = 0; k < length; k += 32 / bits, w += 4) {
    for (f = 0; f < 8 / bits; ++f) {
      const wide_weights block = take_fields(w, f * bits, bits);
      a = add_quads(a, block, from + k + 4 * f);
      b = add_quads(b, block, from + length + k + 4 * f);
    }
  }
  join_quads(a, sums);
  join_quads(b, sums + 4);
}
#else
/* A word of `columns` holds the codes of two pixels, so one multiplication by a weight gives both
   products, and one addition updates both sums. */
INLINE void expand_pair_packed(uint32_t *columns, const uint8_t *x0, const uint8_t *x1,
                               int32_t length, int32_t bits, int32_t *total) {
  const uint8_t *const end = x0 + length;
  (void)bits;
  total[0] = total[1] = 0;
  while (x0 != end) {
    /* 256 codes add up to less than 2^16. */
    const uint8_t *const stop = end - x0 > 256 ? x0 + 256 : end;
    uint32_t sum = 0;
    do {
#define COLUMN(k)                                        \
  {                                                      \
    const uint32_t both = x0[k] | (uint32_t)x1[k] << 16; \
    columns[k] = both;                                   \
    sum += both;                                         \
  }
      COLUMN(0)
      COLUMN(1)
      COLUMN(2)
      COLUMN(3)
#undef COLUMN
      x0 += 4;
      x1 += 4;
      columns += 4;
    } while (x0 != stop);
    total[0] += (int32_t)(sum & 0xffff);
    total[1] += (int32_t)(sum >> 16);
  }
}
/* Sums of 16 products (4 bits) or 64 products (2 bits) stay below 2^16: they are at most
   16 * 15 * 255 or 64 * 3 * 255. */
INLINE void sums_4x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                            int32_t bits, int32_t *sums) {
  const uint32_t mask = bits == 4 ? 15 : 3;
  const int32_t most = bits == 4 ? 16 : 64;
  const uint32_t *const end = columns + length;
  do {
    const uint32_t *const stop = end - columns > most ? columns + most : end;
    uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    do {
      const uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
#define FIELD(n, at)                     \
  {                                      \
    const uint32_t x = columns[at];      \
    s0 += (w0 >> ((n)*bits) & mask) * x; \
    s1 += (w1 >> ((n)*bits) & mask) * x; \
    s2 += (w2 >> ((n)*bits) & mask) * x; \
    s3 += (w3 >> ((n)*bits) & mask) * x; \
    STEP_4(s0, s1, s2, s3);              \
  }
      EACH_FIELD
#undef FIELD
      columns += 32 / bits;
      w += 4;
    } while (columns != stop);
    sums[0] += (int32_t)(s0 & 0xffff);
    sums[1] += (int32_t)(s1 & 0xffff);
    sums[2] += (int32_t)(s2 & 0xffff);
    sums[3] += (int32_t)(s3 & 0xffff);
    sums[4] += (int32_t)(s0 >> 16);
    sums[5] += (int32_t)(s1 >> 16);
    sums[6] += (int32_t)(s2 >> 16);
    sums[7] += (int32_t)(s3 >> 16);
  } while (columns != end);
}
#endif
//@ packed_one
#if defined(CORE_DSP)
INLINE void sums_4x1_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                            int32_t *sums) {
  uint32_t mask = bits == 4 ? 0x000f000f : 0x00030003;
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  const uint8_t *const end = x + length;
  KEEP_IN_REGISTER(mask);
  do {
    const uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
#define PAIR(n, codes)                                     \
  s0 = add_products(codes, (w0 >> ((n)*bits)) & mask, s0); \
  s1 = add_products(codes, (w1 >> ((n)*bits)) & mask, s1); \
  s2 = add_products(codes, (w2 >> ((n)*bits)) & mask, s2); \
  s3 = add_products(codes, (w3 >> ((n)*bits)) & mask, s3);
#define PAIRS(n)                                                   \
  {                                                                \
    const uint32_t four = load_word(x + 2 * (n));                  \
    const uint32_t even = even_codes(four), odd = odd_codes(four); \
    PAIR(n, even)                                                  \
    PAIR((n) + 1, odd)                                             \
    KEEP_ORDER;                                                    \
  }
    PAIRS(0)
    PAIRS(2)
    if (bits == 2) {
      PAIRS(4)
      PAIRS(6)
    }
#undef PAIRS
#undef PAIR
    x += 32 / bits;
    w += 4;
  } while (x != end);
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
#elif defined(CORE_WIDE)
INLINE void sums_4x1_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                            int32_t *sums) {
  quads s = NO_QUADS;
  int32_t k, f;
  for (k = 0; k < length; k += 32 / bits, w += 4) {
    uint8_t codes[16];
    order_codes(codes, x + k, bits);
    for (f = 0; f < 8 / bits; ++f) s = add_quads(s, take_fields(w, f * bits, bits), codes + 4 * f);
  }
  join_quads(s, sums);
}
#else
INLINE void sums_4x1_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                            int32_t *sums) {
  const uint32_t mask = bits == 4 ? 15 : 3;
  uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  const uint8_t *const end = x + length;
  do {
    const uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
#define FIELD(n, at)                        \
  {                                         \
    const uint32_t code = x[at];            \
    s0 += (w0 >> ((n)*bits) & mask) * code; \
    s1 += (w1 >> ((n)*bits) & mask) * code; \
    s2 += (w2 >> ((n)*bits) & mask) * code; \
    s3 += (w3 >> ((n)*bits) & mask) * code; \
    STEP_4(s0, s1, s2, s3);                 \
  }
    EACH_FIELD
#undef FIELD
    x += 32 / bits;
    w += 4;
  } while (x != end);
  sums[0] += (int32_t)s0;
  sums[1] += (int32_t)s1;
  sums[2] += (int32_t)s2;
  sums[3] += (int32_t)s3;
}
#endif
//@ packed_row
INLINE int32_t sum_row_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                              int32_t sum) {
  const uint32_t mask = bits == 4 ? 15 : 3;
  const int32_t in_word = 32 / bits;
  const uint8_t *const end = x + length;
  int32_t n;
  do {
    uint32_t word = *w++;
    for (n = 0; n < in_word; ++n, word >>= bits)
      sum += (int32_t)(word & mask) * x[field_position(n, bits)];
    x += in_word;
  } while (x != end);
  return sum;
}
