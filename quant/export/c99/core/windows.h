//@ max_pool_step
static void step@ID@(const uint8_t *x, uint8_t *y) {
  int32_t i, u, v, c;
@PIXELS@@CORNER@@CLIP@    uint8_t *const to = y + i * @CHANNELS@;
    memcpy(to, x + (u_begin * @WIDTH@ + v_begin) * @CHANNELS@, @CHANNELS@);
    for (u = u_begin; u < u_end; ++u) {
      for (v = v_begin; v < v_end; ++v) {
        const uint8_t *const from = x + (u * @WIDTH@ + v) * @CHANNELS@;
        for (c = 0; c < @CHANNELS@; ++c) to[c] = from[c] > to[c] ? from[c] : to[c];
      }
    }
  }
}
//@ avg_pool_step
static void step@ID@(const uint8_t *x, uint8_t *y) {
  int32_t i, u, v, c;
@PIXELS@@CORNER@@CLIP@    const int32_t count = (u_end - u_begin) * (v_end - v_begin);
@FIND@    for (c = 0; c < @CHANNELS@; ++c) {
      int32_t sum = -@ZERO@ * count;
      for (u = u_begin; u < u_end; ++u) {
        const uint8_t *from = x + (u * @WIDTH@ + v_begin) * @CHANNELS@ + c;
        for (v = v_begin; v < v_end; ++v, from += @CHANNELS@) sum += *from;
      }
      y[i * @CHANNELS@ + c] = requantize_any(sum, @MULTIPLIER@, @Y_ZERO@, @LOW@, @HIGH@);
    }
  }
}
//@ clip
    const int32_t u_begin = top < 0 ? 0 : top, v_begin = left < 0 ? 0 : left;
    const int32_t u_end = top + @KH@ > @HEIGHT@ ? @HEIGHT@ : top + @KH@;
    const int32_t v_end = left + @KW@ > @WIDTH@ ? @WIDTH@ : left + @KW@;
