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
/* Packed weights have `bits` bits. A weight w of 2 or 4 bits is stored as w + 2^(bits - 1), which is
   not negative, and w of 1 bit, -1 or +1, as (w + 1) / 2. A word holds 32 / bits weights of a row,
   one in each field of `bits` bits. Their order lets a mask extract two weights that are 16 bits
   apart in the word: first weights 0 and 2, then 1 and 3, 4 and 6, 5 and 7, and so on. The function
   gives the index of the weight in field n. */
INLINE int32_t field_position(int32_t n, int32_t bits) {
  const int32_t half = 16 / bits;
  return n % half / 2 * 4 + n % 2 + (n >= half ? 2 : 0);
}
/* The length of a row of packed weights: whole words. */
INLINE int32_t whole_words(int32_t length, int32_t bits) {
  return (length + 32 / bits - 1) / (32 / bits) * (32 / bits);
}
/* Sums of weights are those of fields minus `excess`, the sum of the codes times what packing adds
   to a weight; with 1 bit, twice those of fields minus `excess`. begin_4 and end_4 come before and
   after the sums of fields. */
INLINE void begin_4(int32_t excess, int32_t bits, int32_t *sums) {
  sums[0] = sums[1] = sums[2] = sums[3] = bits == 1 ? 0 : -excess;
}
INLINE void end_4(const int32_t *start, int32_t excess, int32_t bits, int32_t *sums) {
  const int32_t less = bits == 1 ? excess : 0, factor = bits == 1 ? 2 : 1;
  sums[0] = start[0] - less + factor * sums[0];
  sums[1] = start[1] - less + factor * sums[1];
  sums[2] = start[2] - less + factor * sums[2];
  sums[3] = start[3] - less + factor * sums[3];
}
#if defined(CORE_PLAIN)
/* FIELD(n, field_position(n, bits)) for weights 4 * i to 4 * i + 3 of a word. */
#define FOUR_FIELDS(i)                    \
  FIELD(2 * (i), 4 * (i))                 \
  FIELD(2 * (i) + 1, 4 * (i) + 1)         \
  FIELD(16 / bits + 2 * (i), 4 * (i) + 2) \
  FIELD(16 / bits + 2 * (i) + 1, 4 * (i) + 3)
#endif
//@ take_fields
#if defined(CORE_WIDE)
/* Extracts the field at bit `shift` of each byte of four words. */
INLINE wide_weights take_fields(const uint32_t *w, int32_t shift, int32_t bits) {
  const int8_t mask = (int8_t)((1 << bits) - 1);
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
    columns[0] = even_codes(a);
    columns[1] = even_codes(b);
    columns[2] = odd_codes(a);
    columns[3] = odd_codes(b);
    s0 = add_bytes_of(a, s0);
    s1 = add_bytes_of(b, s1);
  }
  total[0] = s0;
  total[1] = s1;
}
INLINE void sums_2x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                            int32_t bits, int32_t *sums) {
  uint32_t mask = ((1u << bits) - 1) * 0x00010001u;
  int32_t a0 = sums[0], a1 = sums[1], b0 = sums[4], b1 = sums[5];
  const int32_t rest = length % (32 / bits);
  const uint32_t *const end = columns + (length - rest);
  KEEP_IN_REGISTER(mask);
#define PAIRS(n)                                                                   \
  {                                                                                \
    const uint32_t x0 = columns[2 * (n)], x1 = columns[2 * (n) + 1];               \
    const uint32_t p0 = (w0 >> ((n)*bits)) & mask, p1 = (w1 >> ((n)*bits)) & mask; \
    a0 = add_products(x0, p0, a0);                                                 \
    a1 = add_products(x0, p1, a1);                                                 \
    b0 = add_products(x1, p0, b0);                                                 \
    b1 = add_products(x1, p1, b1);                                                 \
    KEEP_ORDER;                                                                    \
  }
#define FOUR_PAIRS(n) \
  PAIRS(n)            \
  PAIRS((n) + 1)      \
  PAIRS((n) + 2)      \
  PAIRS((n) + 3)
  while (columns != end) {
    const uint32_t w0 = w[0], w1 = w[1];
    FOUR_PAIRS(0)
    if (bits <= 2) {
      FOUR_PAIRS(4)
    }
    if (bits == 1) {
      FOUR_PAIRS(8)
      FOUR_PAIRS(12)
    }
    columns += 32 / bits;
    w += 4;
  }
  if (rest > 0) { /* the begun word */
    const uint32_t w0 = w[0], w1 = w[1];
#define NEXT(i)         \
  if (rest > 4 * (i)) { \
    PAIRS(2 * (i))      \
    PAIRS(2 * (i) + 1)  \
  }
    NEXT(0)
    if (bits <= 2) {
      NEXT(1)
      NEXT(2)
    }
    if (bits == 1) {
      NEXT(3)
      NEXT(4)
      NEXT(5)
      NEXT(6)
    }
#undef NEXT
  }
#undef FOUR_PAIRS
#undef PAIRS
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
  length = whole_words(length, bits);
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
  length = whole_words(length, bits);
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
/* Sums of 16 products (4 bits), 64 (2 bits) or 256 (1 bit) stay below 2^16: they are at most
   16 * 15 * 255, 64 * 3 * 255 or 256 * 255. */
INLINE void sums_4x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                            int32_t bits, int32_t *sums) {
  const uint32_t mask = (1u << bits) - 1;
  const int32_t most = bits == 4 ? 16 : bits == 2 ? 64 : 256;
  const uint32_t *const end = columns + length, *const whole = end - length % (32 / bits);
  do {
    const int32_t ends = end - columns <= most;
    const uint32_t *const stop = ends ? whole : columns + most;
    uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#define FIELD(n, at)                     \
  {                                      \
    const uint32_t x = columns[at];      \
    s0 += (w0 >> ((n)*bits) & mask) * x; \
    s1 += (w1 >> ((n)*bits) & mask) * x; \
    s2 += (w2 >> ((n)*bits) & mask) * x; \
    s3 += (w3 >> ((n)*bits) & mask) * x; \
    STEP_4(s0, s1, s2, s3);              \
  }
    while (columns != stop) {
      const uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
      FOUR_FIELDS(0)
      FOUR_FIELDS(1)
      if (bits <= 2) {
        FOUR_FIELDS(2)
        FOUR_FIELDS(3)
      }
      if (bits == 1) {
        FOUR_FIELDS(4)
        FOUR_FIELDS(5)
        FOUR_FIELDS(6)
        FOUR_FIELDS(7)
      }
      columns += 32 / bits;
      w += 4;
    }
    if (ends && columns != end) { /* the begun word */
      uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
      do {
        FOUR_FIELDS(0)
        columns += 4;
        if (bits == 4) break;
        w0 >>= 2 * bits;
        w1 >>= 2 * bits;
        w2 >>= 2 * bits;
        w3 >>= 2 * bits;
      } while (columns != end);
    }
#undef FIELD
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
/* PAIRS for all weights of a word. */
#define ALL_PAIRS  \
  PAIRS(0)         \
  PAIRS(2)         \
  if (bits <= 2) { \
    PAIRS(4)       \
    PAIRS(6)       \
  }                \
  if (bits == 1) { \
    PAIRS(8)       \
    PAIRS(10)      \
    PAIRS(12)      \
    PAIRS(14)      \
  }
#if defined(CORE_DSP)
INLINE void sums_4x1_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                            int32_t *sums) {
  uint32_t mask = ((1u << bits) - 1) * 0x00010001u;
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  const uint8_t *const end = x + whole_words(length, bits);
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
    ALL_PAIRS
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
    uint8_t codes[32];
    order_codes(codes, x + k, bits);
    for (f = 0; f < 8 / bits; ++f) s = add_quads(s, take_fields(w, f * bits, bits), codes + 4 * f);
  }
  join_quads(s, sums);
}
#else
/* A mask extracts two weights, v + 2^16 * w. Their product with y + 2^16 * x, where x and y are the
   codes of v and w, has v * x + w * y in its high half, above v * y in its low half. The halves of
   a sum of 8 such products (4 bits), 32 (2 bits) or 128 (1 bit) stay below 2^16: they are at most
   8 * 2 * 15 * 255, 32 * 2 * 3 * 255 or 128 * 2 * 255. */
INLINE void sums_4x1_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                            int32_t *sums) {
  const uint32_t codes = 0x00ff00ff;
  uint32_t mask = ((1u << bits) - 1) * 0x00010001u;
  const int32_t most = bits == 4 ? 16 : bits == 2 ? 64 : 256;
  const uint8_t *const end = x + whole_words(length, bits);
  KEEP_IN_REGISTER(mask);
  do {
    const uint8_t *const stop = end - x > most ? x + most : end;
    uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    do {
      const uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
#define PAIR(n, yx)                         \
  {                                         \
    const uint32_t pair = yx;               \
    s0 += (w0 >> ((n)*bits) & mask) * pair; \
    s1 += (w1 >> ((n)*bits) & mask) * pair; \
    s2 += (w2 >> ((n)*bits) & mask) * pair; \
    s3 += (w3 >> ((n)*bits) & mask) * pair; \
    STEP_4(s0, s1, s2, s3);                 \
  }
#define PAIRS(n)                                    \
  {                                                 \
    const uint32_t four = four_codes(x + 2 * (n));  \
    PAIR(n, (four >> 16 | four << 16) & codes)      \
    PAIR((n) + 1, (four >> 24 | four << 8) & codes) \
  }
      ALL_PAIRS
#undef PAIRS
#undef PAIR
      x += 32 / bits;
      w += 4;
    } while (x != stop);
    sums[0] += (int32_t)(s0 >> 16);
    sums[1] += (int32_t)(s1 >> 16);
    sums[2] += (int32_t)(s2 >> 16);
    sums[3] += (int32_t)(s3 >> 16);
  } while (x != end);
}
#endif
#undef ALL_PAIRS
//@ packed_row
INLINE int32_t sum_row_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits) {
  const uint32_t mask = (1u << bits) - 1;
  const int32_t in_word = 32 / bits;
  const uint8_t *const end = x + whole_words(length, bits);
  int32_t n, sum = 0;
  do {
    uint32_t word = *w++;
    for (n = 0; n < in_word; ++n, word >>= bits)
      sum += (int32_t)(word & mask) * x[field_position(n, bits)];
    x += in_word;
  } while (x != end);
  return sum;
}
