//@ check
#pragma once
#include "vectors.h"
#define $EACH_PIXEL$ \
  i = 0;             \
  i < 9;             \
  i += 1
#define $EACH_TAP$ TAP(0) TAP(1)
#define $DEPTHWISE_TAPS$ taps[0] = at
enum { $OW$ = 3, $STRIDE_H$ = 2, $STRIDE_W$ = 1, $PAD_H$ = 1, $PAD_W$ = 0, $TAPS$ = 2, $TAP$ = 1 };
enum { $HEIGHT$ = 6, $WIDTH$ = 4, $CHANNELS$ = 5, $ROW$ = 20, $BLANK$ = 7, $OFFSET$ = 9 };
enum { $DILATION_H$ = 1, $DILATION_W$ = 2 };
enum { $LAST_TOP$ = 4, $LAST_LEFT$ = 3, $WINDOW_HEIGHT$ = 2, $WINDOW_WIDTH$ = 2 };
static const struct product product$ID$[1];
#if $CODES$
typedef uint8_t $OUTPUT$;
#else
typedef int32_t $OUTPUT$;
#endif
void $FUNCTION$(const struct product *p, const uint8_t *const *taps, $OUTPUT$ *y);
//@ depthwise
/* y[c] of one pixel: start[c] + sum over $TAPS$ taps t of weight[t][c] * taps[t][c], requantized if
   y holds codes. Weights lie in groups of four channels, [tap][channel]; the remaining channels
   follow, one row of taps each. */
NOINLINE void $NAME$(const struct product *p, const uint8_t *const *taps, $OUTPUT$ *y) {
  const int8_t *w = (const int8_t *)p->weights;
  const int32_t *start = p->start;
#if $CODES$
  const int32_t *multiplier = p->multiplier;
  const uint8_t *shift = p->shift;
  const int32_t zero = p->zero, low = p->low, high = p->high;
#endif
  int32_t left = p->outputs, c = 0;
#if defined(CORE_MVE)
#define TAP(t)                                                                                     \
  {                                                                                                \
    sums =                                                                                         \
        vaddq_s32(sums, vmulq_s32(vreinterpretq_s32_u32(vldrbq_u32(taps[t] + c)), vldrbq_s32(w))); \
    w += 4;                                                                                        \
    KEEP_IN_REGISTER(w);                                                                           \
  }
  for (; left >= 4; left -= 4) {
    int32x4_t sums = vld1q_s32(start);
#if $FEW_TAPS$
    $EACH_TAP$;
#else
    {
      int32_t t;
      for (t = 0; t < $TAPS$; ++t) TAP(t)
    }
#endif
#if $CODES$
    store_4(p, sums, multiplier, shift, zero, low, high, y);
#else
    vst1q_s32(y, sums);
#endif
    c += 4;
    start += 4;
    y += 4;
#if $CODES$
    multiplier += 4;
    shift += 4;
#endif
  }
#undef TAP
#else
  for (; left >= 4; left -= 4) {
    int32_t s0 = start[0], s1 = start[1], s2 = start[2], s3 = start[3];
#if defined(CORE_DSP)
#define TAP(t)                                                             \
  {                                                                        \
    const uint32_t x = load_word(taps[t] + c), v = load_word(w + 4 * (t)); \
    const uint32_t x_even = even_codes(x), x_odd = odd_codes(x);           \
    const uint32_t v_even = even_weights(v), v_odd = odd_weights(v);       \
    s0 = add_low_product(x_even, v_even, s0);                              \
    s1 = add_low_product(x_odd, v_odd, s1);                                \
    s2 = add_high_product(x_even, v_even, s2);                             \
    s3 = add_high_product(x_odd, v_odd, s3);                               \
    STEP_4(s0, s1, s2, s3);                                                \
  }
#else
#define TAP(t)                            \
  {                                       \
    const uint8_t *const x = taps[t] + c; \
    s0 += w[4 * (t)] * x[0];              \
    s1 += w[4 * (t) + 1] * x[1];          \
    s2 += w[4 * (t) + 2] * x[2];          \
    s3 += w[4 * (t) + 3] * x[3];          \
    STEP_4(s0, s1, s2, s3);               \
  }
#endif
#if $FEW_TAPS$
    $EACH_TAP$;
#else
    {
      int32_t t;
      for (t = 0; t < $TAPS$; ++t) TAP(t)
    }
#endif
#undef TAP
#if $CODES$
    y[0] = code(p, s0, multiplier[0], shift[0], zero, low, high);
    y[1] = code(p, s1, multiplier[1], shift[1], zero, low, high);
    y[2] = code(p, s2, multiplier[2], shift[2], zero, low, high);
    y[3] = code(p, s3, multiplier[3], shift[3], zero, low, high);
#else
    y[0] = s0;
    y[1] = s1;
    y[2] = s2;
    y[3] = s3;
#endif
    w += 4 * $TAPS$;
    c += 4;
    start += 4;
    y += 4;
#if $CODES$
    multiplier += 4;
    shift += 4;
#endif
  }
#endif
#if $SINGLE_ROWS$
  left &= 3; /* says to the compiler that at most three are left */
  for (; left > 0; --left) {
    int32_t s0 = start[0], t;
    for (t = 0; t < $TAPS$; ++t) s0 += w[t] * taps[t][c];
#if $CODES$
    y[0] = code(p, s0, multiplier[0], shift[0], zero, low, high);
#else
    y[0] = s0;
#endif
    w += $TAPS$;
    ++c;
    ++start;
    ++y;
#if $CODES$
    ++multiplier;
    ++shift;
#endif
  }
#endif
}
//@ depthwise_step
static void step$ID$(const uint8_t *x, $OUTPUT$ *y) {
  const uint8_t *taps[$TAPS$];
  int32_t i;
  for ($EACH_PIXEL$) {
    const int32_t top = i / $OW$ * $STRIDE_H$ - $PAD_H$, left = i % $OW$ * $STRIDE_W$ - $PAD_W$;
    const uint8_t *const at = x + (top * $WIDTH$ + left) * $CHANNELS$;
    //@ each DEPTHWISE_TAPS
    taps[$TAP$] = at + $OFFSET$;
    //@ end
    $FUNCTION$(product$ID$, taps, y + i * $CHANNELS$);
  }
}
//@ depthwise_step_padded
static void step$ID$(const uint8_t *x, $OUTPUT$ *y, uint8_t *blank) {
  const uint8_t *taps[$TAPS$];
  int32_t i, u, v;
  memset(blank, $BLANK$, $CHANNELS$);
  for ($EACH_PIXEL$) {
    const int32_t top = i / $OW$ * $STRIDE_H$ - $PAD_H$, left = i % $OW$ * $STRIDE_W$ - $PAD_W$;
#if $FITS$
    if (top >= 0 && top <= $LAST_TOP$ && left >= 0 && left <= $LAST_LEFT$) {
      const uint8_t *const at = x + (top * $WIDTH$ + left) * $CHANNELS$;
      $DEPTHWISE_TAPS$;
    } else
#endif
    {
      const uint8_t **tap = taps;
      for (u = top; u < top + $WINDOW_HEIGHT$; u += $DILATION_H$) {
        const int32_t in_image = u >= 0 && u < $HEIGHT$;
        for (v = left; v < left + $WINDOW_WIDTH$; v += $DILATION_W$) {
          const int32_t inside = in_image && v >= 0 && v < $WIDTH$;
          *tap++ = inside ? x + u * $ROW$ + v * $CHANNELS$ : blank;
        }
      }
    }
    $FUNCTION$(product$ID$, taps, y + i * $CHANNELS$);
  }
}
