//@ check
#pragma once
#include "blocks.h"
#if $CODES$
typedef uint8_t $OUTPUT$;
#else
typedef int32_t $OUTPUT$;
#endif
//@ bits
/* Products of bits. A word holds 32 weights of a row, 1 for +1 and 0 for -1, or 32 codes, which are
   0 or 1. Both have the same order: code 4 * i + j is bit 8 * j + i. So a word of codes is a sum of
   eight words of four bytes, each shifted by its number.
     sum of weights * codes = 2 * (ones of weights & codes) - (ones of codes) */
INLINE void pack_codes(uint32_t *to, int32_t step, const uint8_t *x, int32_t length) {
  for (; length >= 32; length -= 32, x += 32, to += step)
    *to = four_codes(x) | four_codes(x + 4) << 1 | four_codes(x + 8) << 2 |
          four_codes(x + 12) << 3 | four_codes(x + 16) << 4 | four_codes(x + 20) << 5 |
          four_codes(x + 24) << 6 | four_codes(x + 28) << 7;
  if (length > 0) {
    uint32_t word = 0;
    x += length;
    for (; length > 0; length -= 4) word = word << 1 | four_codes(x -= 4);
    *to = word;
  }
}
/* Masks of every other bit, of every other two, and of every other four. The arithmetic of an Arm
   processor shifts an operand for nothing, but only if the mask is in a register. */
struct masks {
  uint32_t ones, twos, fours;
};
#define MASKS(m)                                         \
  struct masks m = {0x55555555, 0x33333333, 0x0f0f0f0f}; \
  KEEP_IN_REGISTER(m.ones);                              \
  KEEP_IN_REGISTER(m.twos);                              \
  KEEP_IN_REGISTER(m.fours)
/* The number of ones in each four bits, from there in each eight, and from there in all. */
INLINE uint32_t ones_of_4(uint32_t word, struct masks m) {
  const uint32_t twos = word - (word >> 1 & m.ones);
  return (twos & m.twos) + (twos >> 2 & m.twos);
}
INLINE uint32_t ones_of_8(uint32_t fours, struct masks m) {
  return (fours & m.fours) + (fours >> 4 & m.fours);
}
/* The sum of the bytes of a word: of any bytes, and of bytes whose sum is below 256. */
INLINE uint32_t add_bytes(uint32_t bytes) {
#if defined(CORE_DSP)
  return (uint32_t)add_bytes_of(bytes, 0);
#else
  const uint32_t two = (bytes & 0x00ff00ff) + (bytes >> 8 & 0x00ff00ff);
  return (two + (two >> 16)) & 0xffff;
#endif
}
INLINE uint32_t add_few(uint32_t bytes) {
#if defined(CORE_DSP)
  return (uint32_t)add_bytes_of(bytes, 0);
#else
  return bytes * 0x01010101u >> 24;
#endif
}
/* Where the processor counts ones by an instruction. */
#if defined(__GNUC__) && \
    (defined(__POPCNT__) || defined(__aarch64__) || defined(__wasm__) || defined(__riscv_zbb))
#define COUNTS_ONES 1
#endif
//@ count_pair
/* The ones of w & x for the words x of two pixels, which take turns. */
INLINE void count_pair(const uint32_t *w, const uint32_t *x, int32_t words, struct masks m,
                       int32_t *ones) {
#if defined(COUNTS_ONES)
  int32_t i, a = 0, b = 0;
  (void)m;
  for (i = 0; i < words; ++i) {
    a += __builtin_popcount(w[i] & x[2 * i]);
    b += __builtin_popcount(w[i] & x[2 * i + 1]);
  }
  ones[0] = a;
  ones[1] = b;
#else
  uint32_t all_a = 0, all_b = 0;
  do {
    /* Thirty words have at most 240 ones in all of their bytes at one place. */
    const uint32_t *const end = w + (words > 30 ? 30 : words);
    uint32_t a = 0, b = 0;
    words -= 30;
    if ((end - w) % 2 != 0) {
      a = ones_of_8(ones_of_4(w[0] & x[0], m), m);
      b = ones_of_8(ones_of_4(w[0] & x[1], m), m);
      ++w;
      x += 2;
    }
    while (w != end) {
      a += ones_of_8(ones_of_4(w[0] & x[0], m) + ones_of_4(w[1] & x[2], m), m);
      b += ones_of_8(ones_of_4(w[0] & x[1], m) + ones_of_4(w[1] & x[3], m), m);
      w += 2;
      x += 4;
    }
    all_a += add_bytes(a);
    all_b += add_bytes(b);
  } while (words > 0);
  ones[0] = (int32_t)all_a;
  ones[1] = (int32_t)all_b;
#endif
}
//@ count_one
/* The ones of w & x. */
INLINE int32_t count_one(const uint32_t *w, const uint32_t *x, int32_t words, struct masks m) {
#if defined(COUNTS_ONES)
  int32_t i, a = 0;
  (void)m;
  for (i = 0; i < words; ++i) a += __builtin_popcount(w[i] & x[i]);
  return a;
#else
  uint32_t all = 0;
  do {
    const uint32_t *const end = w + (words > 30 ? 30 : words);
    uint32_t a = 0;
    words -= 30;
    if ((end - w) % 2 != 0) a = ones_of_8(ones_of_4(*w++ & *x++, m), m);
    while (w != end) {
      a += ones_of_8(ones_of_4(w[0] & x[0], m) + ones_of_4(w[1] & x[1], m), m);
      w += 2;
      x += 2;
    }
    all += add_bytes(a);
  } while (words > 0);
  return (int32_t)all;
#endif
}
//@ count_codes
INLINE int32_t count_codes(const uint32_t *x, int32_t step, int32_t words, struct masks m) {
  int32_t i, ones = 0;
  (void)m;
  for (i = 0; i < words; ++i) {
#if defined(COUNTS_ONES)
    ones += __builtin_popcount(x[i * step]);
#else
    ones += (int32_t)add_few(ones_of_8(ones_of_4(x[i * step], m), m));
#endif
  }
  return ones;
}
//@ bits_pair
/* y0[o] and y1[o] of two pixels with the codes x0 and x1, which are 0 or 1, for all outputs. */
NOINLINE void $NAME$(const struct product *p, const uint8_t *x0, const uint8_t *x1,
                     uint32_t *columns, $OUTPUT$ *y0, $OUTPUT$ *y1) {
  const uint32_t *w = (const uint32_t *)p->weights;
  const int32_t *const start = p->start;
#if $FEW_WORDS$
#if $TWO_WORDS$
  const int32_t words = 2;
  uint32_t a0, a1, b0, b1; /* the columns, in registers */
#else
  const int32_t words = 1;
  uint32_t a0, b0;
#endif
#else
  const int32_t words = (p->length + 31) / 32;
#endif
  const int32_t outputs = p->outputs;
  int32_t total[2], o;
  MASKS(m);
  pack_codes(columns, 2, x0, p->length);
  pack_codes(columns + 1, 2, x1, p->length);
  total[0] = count_codes(columns, 2, words, m);
  total[1] = count_codes(columns + 1, 2, words, m);
#if $FEW_WORDS$
  a0 = columns[0];
  b0 = columns[1];
#if $TWO_WORDS$
  a1 = columns[2];
  b1 = columns[3];
#endif
#endif
  for (o = 0; o < outputs; ++o, w += words) {
    int32_t ones[2];
#if $FEW_WORDS$
#if $TWO_WORDS$
    const uint32_t w0 = w[0], w1 = w[1];
    ones[0] = (int32_t)add_few(ones_of_8(ones_of_4(w0 & a0, m) + ones_of_4(w1 & a1, m), m));
    ones[1] = (int32_t)add_few(ones_of_8(ones_of_4(w0 & b0, m) + ones_of_4(w1 & b1, m), m));
#else
    ones[0] = (int32_t)add_few(ones_of_8(ones_of_4(w[0] & a0, m), m));
    ones[1] = (int32_t)add_few(ones_of_8(ones_of_4(w[0] & b0, m), m));
#endif
#else
    count_pair(w, columns, words, m, ones);
#endif
#if $THRESHOLDS$
    /* The start of a sum is minus the threshold. */
    y0[o] = (uint8_t)(p->low + (int32_t)((uint32_t)(total[0] - 1 - start[o] - 2 * ones[0]) >> 31));
    y1[o] = (uint8_t)(p->low + (int32_t)((uint32_t)(total[1] - 1 - start[o] - 2 * ones[1]) >> 31));
#else
#if $CODES$
    store_pair(p, start[o] - total[0] + 2 * ones[0], start[o] - total[1] + 2 * ones[1],
               p->multiplier[o], p->shift[o], p->zero, p->low, p->high, y0 + o, y1 + o);
#else
    y0[o] = start[o] - total[0] + 2 * ones[0];
    y1[o] = start[o] - total[1] + 2 * ones[1];
#endif
#endif
  }
}
//@ bits_one
/* y[o] of one pixel with the codes x, which are 0 or 1, for all outputs. */
NOINLINE void $NAME$(const struct product *p, const uint8_t *x, uint32_t *columns, $OUTPUT$ *y) {
  const uint32_t *w = (const uint32_t *)p->weights;
  const int32_t *const start = p->start;
  const int32_t words = (p->length + 31) / 32, outputs = p->outputs;
  int32_t total, o;
  MASKS(m);
  pack_codes(columns, 1, x, p->length);
  total = count_codes(columns, 1, words, m);
  for (o = 0; o < outputs; ++o, w += words) {
    const int32_t sum = start[o] - total + 2 * count_one(w, columns, words, m);
#if $THRESHOLDS$
    y[o] = (uint8_t)(p->low + (sum >= 0));
#else
#if $CODES$
    y[o] = code(p, sum, p->multiplier[o], p->shift[o], p->zero, p->low, p->high);
#else
    y[o] = sum;
#endif
#endif
  }
}
