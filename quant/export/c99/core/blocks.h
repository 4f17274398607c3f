//@ check
#pragma once
#include "packed.h"
//@ blocks
#if defined(CORE_BLOCKS)
/* Clang unrolls the loops over codes by itself. */
#if !defined(__clang__) && __GNUC__ >= 8
#define UNROLLED _Pragma("GCC unroll 2")
#else
#define UNROLLED
#endif
/* Adds up the partial sums of a block. */
INLINE void join_block(quads a, quads b, quads c, quads d, int32_t *sums) {
#if defined(CORE_WIDENS_PAIRS) && !defined(__clang__)
  /* GCC does not vectorize join_quads. */
  const longs_4 ab = (longs_4)__builtin_ia32_phaddd256(a, b);
  const longs_4 cd = (longs_4)__builtin_ia32_phaddd256(c, d);
  quads low, high;
  memcpy(&low, sums, sizeof low);
  memcpy(&high, sums + 8, sizeof high);
  low += (quads)__builtin_shuffle(ab, (longs_4){0, 2, 1, 3});
  high += (quads)__builtin_shuffle(cd, (longs_4){0, 2, 1, 3});
  memcpy(sums, &low, sizeof low);
  memcpy(sums + 8, &high, sizeof high);
#else
  join_quads(a, sums);
  join_quads(b, sums + 4);
  join_quads(c, sums + 8);
  join_quads(d, sums + 12);
#endif
}
#endif
//@ store_block
#if defined(CORE_BLOCKS)
#if defined(__AVX2__) && !defined(__clang__)
/* By hand, because GCC vectorizes requantize() badly. */
typedef int32_t words_8 __attribute__((vector_size(32)));
typedef uint64_t unsigned_4 __attribute__((vector_size(32)));
INLINE words_8 repeat_word(int32_t a) { return (words_8){a, a, a, a, a, a, a, a}; }
/* Requantizes eight sums, but does not clamp them. */
INLINE words_8 unclamped_8(const int32_t *sums, const int32_t *multiplier, const uint8_t *shift,
                           int32_t zero) {
  words_8 x, m, even, odd, s;
  int64_t bytes;
  memcpy(&x, sums, sizeof x);
  memcpy(&m, multiplier, sizeof m);
  memcpy(&bytes, shift, sizeof bytes);
  s = (words_8)__builtin_ia32_pmovzxbd256((bytes_16)(longs_2){bytes, 0});
  even = (words_8)__builtin_ia32_pmuldq256(x, m);
  odd = (words_8)__builtin_ia32_pmuldq256((words_8)((unsigned_4)x >> 32),
                                          (words_8)((unsigned_4)m >> 32));
  /* The high halves of the products. */
  x = (words_8)__builtin_ia32_pblendd256((words_8)((unsigned_4)even >> 32), odd, 0xaa);
  return (x + (repeat_word(2 * zero + 1) << (s - 1))) >> s;
}
INLINE void requantize_block(const int32_t *sums, const int32_t *multiplier, const uint8_t *shift,
                             int32_t zero, int32_t low, int32_t high, uint8_t *y) {
  const int32_t lowest = (int32_t)((uint32_t)low * 0x01010101u);
  const int32_t highest = (int32_t)((uint32_t)high * 0x01010101u);
  const longs_4 packed =
      (longs_4)__builtin_ia32_packssdw256(unclamped_8(sums, multiplier, shift, zero),
                                          unclamped_8(sums + 8, multiplier + 8, shift + 8, zero));
  const longs_4 ordered = __builtin_shuffle(packed, (longs_4){0, 2, 1, 3});
  halves_8 halves[2];
  bytes_16 codes;
  memcpy(halves, &ordered, sizeof halves);
  codes = __builtin_ia32_packuswb128(halves[0], halves[1]);
  codes = __builtin_ia32_pmaxub128(codes, (bytes_16)(words_4){lowest, lowest, lowest, lowest});
  codes = __builtin_ia32_pminub128(codes, (bytes_16)(words_4){highest, highest, highest, highest});
  memcpy(y, &codes, sizeof codes);
}
#else
INLINE void requantize_block(const int32_t *sums, const int32_t *multiplier, const uint8_t *shift,
                             int32_t zero, int32_t low, int32_t high, uint8_t *y) {
  uint8_t codes[16];
  int32_t r;
  for (r = 0; r < 16; ++r) codes[r] = requantize(sums[r], multiplier[r], shift[r], zero, low, high);
  memcpy(y, codes, sizeof codes);
}
#endif
/* Requantizes the sums of a block. */
INLINE void store_block(const struct product *p, const int32_t *sums, const int32_t *multiplier,
                        const uint8_t *shift, int32_t zero, int32_t low, int32_t high, uint8_t *y) {
#if ANY_SHIFT
  if (p->any_shift) {
    int32_t r;
    for (r = 0; r < 16; ++r)
      y[r] = requantize_any(sums[r], multiplier[r], shift[r], zero, low, high);
    return;
  }
#else
  (void)p;
#endif
  requantize_block(sums, multiplier, shift, zero, low, high, y);
}
#endif
//@ sums_block_pair
#if defined(CORE_BLOCKS)
/* sums[r] += w[r] * x0 and sums[16 + r] += w[r] * x1, for the outputs of a block. */
INLINE void sums_16x2(const int8_t *w, const uint8_t *x0, const uint8_t *x1,
                      const uint32_t *columns, int32_t length, int32_t *sums) {
  const int8_t *const w1 = w + 4 * length, *const w2 = w1 + 4 * length, *const w3 = w2 + 4 * length;
  quads a0 = NO_QUADS, a1 = NO_QUADS, a2 = NO_QUADS, a3 = NO_QUADS;
  quads b0 = NO_QUADS, b1 = NO_QUADS, b2 = NO_QUADS, b3 = NO_QUADS;
  int32_t k;
  (void)columns;
  (void)x0;
  (void)x1;
  UNROLLED
  for (k = 0; k < length; k += 4) {
#if defined(CORE_WIDENS_PAIRS)
#define GROUP(w, a, b)                           \
  {                                              \
    const wide_weights block = widen(w + 4 * k); \
    a = add_widened(a, block, columns + k);      \
    b = add_widened(b, block, columns + k + 2);  \
  }
#else
#define GROUP(w, a, b)                           \
  {                                              \
    const wide_weights block = widen(w + 4 * k); \
    a = add_quads(a, block, x0 + k);             \
    b = add_quads(b, block, x1 + k);             \
  }
#endif
    GROUP(w, a0, b0)
    GROUP(w1, a1, b1)
    GROUP(w2, a2, b2)
    GROUP(w3, a3, b3)
#undef GROUP
  }
  join_block(a0, a1, a2, a3, sums);
  join_block(b0, b1, b2, b3, sums + 16);
}
#endif
//@ sums_block_one
#if defined(CORE_BLOCKS)
/* sums[r] += w[r] * x, for the outputs of a block. */
INLINE void sums_16x1(const int8_t *w, const uint8_t *x, int32_t length, int32_t *sums) {
  const int8_t *const w1 = w + 4 * length, *const w2 = w1 + 4 * length, *const w3 = w2 + 4 * length;
  quads a0 = NO_QUADS, a1 = NO_QUADS, a2 = NO_QUADS, a3 = NO_QUADS;
  int32_t k;
  UNROLLED
  for (k = 0; k < length; k += 4) {
    a0 = add_quads(a0, widen(w + 4 * k), x + k);
    a1 = add_quads(a1, widen(w1 + 4 * k), x + k);
    a2 = add_quads(a2, widen(w2 + 4 * k), x + k);
    a3 = add_quads(a3, widen(w3 + 4 * k), x + k);
  }
  join_block(a0, a1, a2, a3, sums);
}
#endif
//@ packed_blocks
#if defined(CORE_BLOCKS)
/* w and w1 point to packed weights of two groups. add_fields multiplies these weights by the codes
   x, and adds the products to the groups' sums. */
#if defined(CORE_WIDENS_PAIRS)
/* Unlike sums_16x2, this add_fields does not widen: it multiplies bytes. A 16-bit sum gets four
   products of 4-bit weights, at most 4 * 255 * 15, or eight products of 2-bit weights, at most
   8 * 255 * 3; sums of 1-bit weights are smaller. */
typedef char bytes_32 __attribute__((vector_size(32)));
typedef uint16_t fields_16 __attribute__((vector_size(32)));
typedef quads two_groups;
#define NO_GROUPS NO_QUADS
INLINE two_groups add_fields(two_groups sum, const uint32_t *w, const uint32_t *w1,
                             const uint8_t *x, int32_t bits) {
  const uint16_t mask = (uint16_t)(((1 << bits) - 1) * 0x0101);
  wide_weights products = {0};
  longs_2 low, high;
  fields_16 words;
  int32_t f;
  memcpy(&low, w, sizeof low);
  memcpy(&high, w1, sizeof high);
  words = (fields_16)__builtin_ia32_insert128i256((longs_4){low[0], low[1], 0, 0}, high, 1);
  for (f = 0; f < 8 / bits; ++f) {
    int32_t four;
    memcpy(&four, x + 4 * f, sizeof four);
    products += (wide_weights)__builtin_ia32_pmaddubsw256(
        (bytes_32)(quads){four, four, four, four, four, four, four, four},
        (bytes_32)((words >> (uint16_t)(f * bits)) & mask));
  }
  return sum + (quads)__builtin_ia32_pmaddwd256(
                   products, (wide_weights){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
}
INLINE void join_groups(two_groups sum, int32_t *sums) {
  quads total;
  memcpy(&total, sums, sizeof total);
  total += sum;
  memcpy(sums, &total, sizeof total);
}
#else
typedef struct {
  quads first, second;
} two_groups;
#define NO_GROUPS \
  { NO_QUADS, NO_QUADS }
INLINE two_groups add_fields(two_groups sum, const uint32_t *w, const uint32_t *w1,
                             const uint8_t *x, int32_t bits) {
  int32_t f;
  for (f = 0; f < 8 / bits; ++f) {
    sum.first = add_quads(sum.first, take_fields(w, f * bits, bits), x + 4 * f);
    sum.second = add_quads(sum.second, take_fields(w1, f * bits, bits), x + 4 * f);
  }
  return sum;
}
INLINE void join_groups(two_groups sum, int32_t *sums) {
  join_quads(sum.first, sums);
  join_quads(sum.second, sums + 4);
}
#endif
#endif
//@ packed_block_pair
#if defined(CORE_BLOCKS)
INLINE void sums_16x2_packed(const uint32_t *w, const uint32_t *columns, int32_t length,
                             int32_t bits, int32_t *sums) {
  const uint8_t *x = (const uint8_t *)columns;
  const int32_t whole = whole_words(length, bits), step = whole * bits / 8;
  const uint32_t *const w1 = w + step, *const w2 = w1 + step, *const w3 = w2 + step;
  two_groups a0 = NO_GROUPS, a1 = NO_GROUPS, b0 = NO_GROUPS, b1 = NO_GROUPS;
  int32_t i;
  for (i = 0; i < step; i += 4, x += 32 / bits) {
    a0 = add_fields(a0, w + i, w1 + i, x, bits);
    a1 = add_fields(a1, w2 + i, w3 + i, x, bits);
    b0 = add_fields(b0, w + i, w1 + i, x + whole, bits);
    b1 = add_fields(b1, w2 + i, w3 + i, x + whole, bits);
  }
  join_groups(a0, sums);
  join_groups(a1, sums + 8);
  join_groups(b0, sums + 16);
  join_groups(b1, sums + 24);
}
#endif
//@ packed_block_one
#if defined(CORE_BLOCKS)
INLINE void sums_16x1_packed(const uint32_t *w, const uint8_t *x, int32_t length, int32_t bits,
                             int32_t *sums) {
  const int32_t step = whole_words(length, bits) * bits / 8;
  const uint32_t *const w1 = w + step, *const w2 = w1 + step, *const w3 = w2 + step;
  two_groups a0 = NO_GROUPS, a1 = NO_GROUPS;
  int32_t i;
  for (i = 0; i < step; i += 4, x += 32 / bits) {
    uint8_t codes[32];
    order_codes(codes, x, bits);
    a0 = add_fields(a0, w + i, w1 + i, codes, bits);
    a1 = add_fields(a1, w2 + i, w3 + i, codes, bits);
  }
  join_groups(a0, sums);
  join_groups(a1, sums + 8);
}
#endif
