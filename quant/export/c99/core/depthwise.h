//@ depthwise
/* y[c] of one pixel: start[c] + sum over COUNT taps t of weight[t][c] * taps[t][c], requantized if
   y holds codes. Weights lie in groups of four channels, [tap][channel]; the remaining channels
   follow, one row of taps each. */
NOINLINE void DEPTHWISE(const struct product *p, const uint8_t *const *taps, OUTPUT *y) {
  const int8_t *w = (const int8_t *)p->weights;
  const int32_t *start = p->start;
  SETUP
  int32_t left = p->outputs, c = 0;
#if defined(CORE_MVE)
#define TAP(t)                                                                       \
  {                                                                                  \
    sums = vaddq_s32(sums, vmulq_s32(vreinterpretq_s32_u32(vldrbq_u32(taps[t] + c)), \
                                     vldrbq_s32(w)));                                \
    w += 4;                                                                          \
    KEEP_IN_REGISTER(w);                                                             \
  }
  for (; left >= 4; left -= 4) {
    int32x4_t sums = vld1q_s32(start);
    EACH_TAP
    STORE_MVE
    c += 4;
    start += 4;
    y += 4;
    NEXT_GROUP
  }
#undef TAP
#else
  for (; left >= 4; left -= 4) {
    int32_t s0 = start[0], s1 = start[1], s2 = start[2], s3 = start[3];
#if defined(CORE_DSP)
#define TAP(t)                                                                    \
  {                                                                               \
    const uint32_t x = load_word(taps[t] + c), v = load_word(w + 4 * (t));        \
    const uint32_t x_even = even_codes(x), x_odd = odd_codes(x);                  \
    const uint32_t v_even = even_weights(v), v_odd = odd_weights(v);              \
    s0 = add_low_product(x_even, v_even, s0);                                     \
    s1 = add_low_product(x_odd, v_odd, s1);                                       \
    s2 = add_high_product(x_even, v_even, s2);                                    \
    s3 = add_high_product(x_odd, v_odd, s3);                                      \
    STEP_4(s0, s1, s2, s3);                                                       \
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
    EACH_TAP
#undef TAP
    STORE(0)
    STORE(1)
    STORE(2)
    STORE(3)
    w += 4 * COUNT;
    c += 4;
    start += 4;
    y += 4;
    NEXT_GROUP
  }
#endif
  ROWS
}
//@ depthwise_rows
  for (; left > 0; --left) {
    int32_t s0 = start[0], t;
    for (t = 0; t < COUNT; ++t) s0 += w[t] * taps[t][c];
    STORE(0)
    w += COUNT;
    ++c;
    ++start;
    ++y;
    NEXT_ROW
  }
//@ depthwise_step
static void step@ID@(const uint8_t *x, @TYPE@ *y) {
  const uint8_t *taps[@TAPS@];
  int32_t i;
@PIXELS@@CORNER@    const uint8_t *const at = x + (top * @WIDTH@ + left) * @CHANNELS@;
@INSIDE@    @FUNCTION@(product@ID@, taps, y + i * @CHANNELS@);
  }
}
//@ depthwise_step_padded
static void step@ID@(const uint8_t *x, @TYPE@ *y, uint8_t *blank) {
  const uint8_t *taps[@TAPS@];
  int32_t i, u, v;
  memset(blank, @ZERO@, @CHANNELS@);
@PIXELS@@CORNER@    if (@IS_INSIDE@) {
      const uint8_t *const at = x + (top * @WIDTH@ + left) * @CHANNELS@;
@INSIDE@    } else {
      const uint8_t **tap = taps;
      for (u = top; u < top + @WINDOW_HEIGHT@; @NEXT_U@) {
        const int32_t in_image = u >= 0 && u < @HEIGHT@;
        for (v = left; v < left + @WINDOW_WIDTH@; @NEXT_V@) {
          const int32_t inside = in_image && v >= 0 && v < @WIDTH@;
          *tap++ = inside ? x + u * @ROW@ + v * @CHANNELS@ : blank;
        }
      }
    }
    @FUNCTION@(product@ID@, taps, y + i * @CHANNELS@);
  }
}
