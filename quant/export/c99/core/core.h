//@ check
#pragma once
#include <stdint.h>
#include <string.h>
#define ANY_SHIFT 1
/* Each step$ID$ and each $NAME$ is the name of another function. */
#define NAME_OF_2(line) name_##line
#define NAME_OF(line) NAME_OF_2(line)
#define step$ID$ NAME_OF(__LINE__)
#define patch$ID$ NAME_OF(__LINE__)
#define $NAME$ NAME_OF(__LINE__)
//@ begin
/* C99 lets the compiler choose how to shift negative numbers right. The sign must be kept. */
typedef char right_shift_keeps_the_sign[(-1 >> 1) == -1 ? 1 : -1];

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline, unused))
/* All layers share one copy of a NOINLINE function. Inlined, it would have fewer registers. */
#define NOINLINE static __attribute__((noinline))
#else
#define INLINE static inline
#define NOINLINE static
#endif
//@ products
/* Barriers for Cortex-M. The compiler must finish the arithmetic before a barrier, and only then
   load the operands of the arithmetic after it. Without barriers, compilers load all operands first
   and run out of registers. */
#if defined(__GNUC__) && defined(__arm__)
#define STEP_4(a, b, c, d) __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : : "memory")
#define KEEP_ORDER __asm__ volatile("" : : : "memory")
#define KEEP_IN_REGISTER(x) __asm__("" : "+r"(x))
#else
#define KEEP_ORDER (void)0
#define STEP_4(a, b, c, d) (void)0
#define KEEP_IN_REGISTER(x) (void)0
#endif

/* The form in which products are computed. All forms give the same integers; CORE_PLAIN is
   portable. */
#if defined(CORE_PLAIN)
#elif !defined(__GNUC__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#define CORE_PLAIN 1
#elif defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#define CORE_MVE 1
#define CORE_DSP 1 /* for packed weights, and for outputs that are not in a group */
#elif defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define CORE_DSP 1
#elif (defined(__SSE2__) || defined(__aarch64__) || defined(__wasm_simd128__))
#define CORE_WIDE 1
#else
#define CORE_PLAIN 1
#endif

/* A product: y[o] = requantize(start[o] + sum over k of weight[o][k] * x[k]).
   Weights lie in groups of four outputs, in the order [k / 4][output][k % 4], or with MVE
   [k / 16][output][k % 16]. Packed weights have the order [word][output]. The remaining outputs
   follow, one row each. Zeros pad the rows to `length`, and with MVE the 8-bit rows of a group to a
   multiple of 16. Depthwise layers have another order. */
struct product {
  const void *weights; /* int8_t, or packed in uint32_t */
  const int32_t *start;
  const int32_t *multiplier;
  const uint8_t *shift;
  int32_t length, outputs;
  int32_t zero, low, high;
#if ANY_SHIFT
  int32_t any_shift;
#endif
};

INLINE uint32_t load_word(const void *from) {
  uint32_t word;
  memcpy(&word, from, sizeof word);
  return word;
}
/* Four codes in the bytes of a word, the first one in the lowest byte. */
INLINE uint32_t four_codes(const uint8_t *x) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return load_word(x);
#else
  return x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16 | (uint32_t)x[3] << 24;
#endif
}
//@ requantize
/* clamp(((sum * multiplier + 2^(s - 1)) >> s) + zero, low, high) for s = shift + 32 from 33 to 52.
   The code shifts by 32 first, because the low half of the product does not affect the result.
   Before the second shift, by `shift`, it adds the half for rounding and zero * 2^shift. */
INLINE uint8_t requantize(int32_t sum, int32_t multiplier, int32_t shift, int32_t zero, int32_t low,
                          int32_t high) {
  const int32_t top = (int32_t)(((int64_t)sum * multiplier) >> 32);
  int32_t code = (top + ((2 * zero + 1) << (shift - 1))) >> shift;
  code = code < low ? low : code;
  code = code > high ? high : code;
  return (uint8_t)code;
}
//@ requantize_any
/* The same for any s from 1 to 62. Here shift is s. */
INLINE uint8_t requantize_any(int32_t sum, int32_t multiplier, int32_t shift, int32_t zero,
                              int32_t low, int32_t high) {
  const int64_t product = (int64_t)sum * multiplier;
  int64_t code = ((product + ((int64_t)1 << (shift - 1))) >> shift) + zero;
  code = code < low ? low : code;
  code = code > high ? high : code;
  return (uint8_t)code;
}
//@ softmax
/* floor(n / d), which must be below 2^31. Computed bit by bit, because few targets can divide
   64-bit numbers. */
static int32_t quotient(uint64_t n, uint64_t d) {
  uint64_t rest = n >> 31;
  uint32_t bits = (uint32_t)n << 1;
  int32_t i, result = 0;
  for (i = 0; i < 31; ++i) {
    rest = rest << 1 | bits >> 31;
    bits <<= 1;
    result *= 2;
    if (rest >= d) {
      rest -= d;
      ++result;
    }
  }
  return result;
}
//@ code
INLINE uint8_t code(const struct product *p, int32_t sum, int32_t multiplier, int32_t shift,
                    int32_t zero, int32_t low, int32_t high) {
#if ANY_SHIFT
  if (p->any_shift) return requantize_any(sum, multiplier, shift, zero, low, high);
#else
  (void)p;
#endif
  return requantize(sum, multiplier, shift, zero, low, high);
}
//@ store_mve
#if defined(CORE_MVE)
/* Requantizes four sums. */
INLINE void store_4(const struct product *p, int32x4_t sums, const int32_t *multiplier,
                    const uint8_t *shift, int32_t zero, int32_t low, int32_t high, uint8_t *y) {
  int32x4_t codes;
#if ANY_SHIFT
  if (p->any_shift) {
    int32_t each[4], i;
    vst1q_s32(each, sums);
    for (i = 0; i < 4; ++i)
      y[i] = requantize_any(each[i], multiplier[i], shift[i], zero, low, high);
    return;
  }
#else
  (void)p;
#endif
  codes = vmulhq_s32(sums, vld1q_s32(multiplier));
  codes = vrshlq_s32(codes, vnegq_s32(vreinterpretq_s32_u32(vldrbq_u32(shift))));
  codes = vaddq_n_s32(codes, zero);
  codes = vminq_s32(vmaxq_s32(codes, vdupq_n_s32(low)), vdupq_n_s32(high));
  vstrbq_s32((int8_t *)y, codes);
}
#endif
//@ store_pair
INLINE void store_pair(const struct product *p, int32_t sum0, int32_t sum1, int32_t multiplier,
                       int32_t shift, int32_t zero, int32_t low, int32_t high, uint8_t *y0,
                       uint8_t *y1) {
  const uint8_t code0 = code(p, sum0, multiplier, shift, zero, low, high);
  const uint8_t code1 = code(p, sum1, multiplier, shift, zero, low, high);
  *y0 = code0;
  *y1 = code1;
}
