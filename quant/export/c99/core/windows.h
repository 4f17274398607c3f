//@ check
#pragma once
#include "core.h"
#define $EACH_PIXEL$ \
  i = 0;             \
  i < 9;             \
  i += 1
enum { $OW$ = 3, $STRIDE_H$ = 2, $STRIDE_W$ = 1, $PAD_H$ = 1, $PAD_W$ = 0, $KH$ = 3, $KW$ = 2 };
enum { $HEIGHT$ = 6, $WIDTH$ = 4, $CHANNELS$ = 5, $ZERO$ = 7, $M0$ = 9, $SHIFT$ = 40 };
enum { $Y_ZERO$ = 3, $LOW$ = 0, $HIGH$ = 255 };
static const int32_t count$ID$[2], multiplier$ID$[2];
static const uint8_t shift$ID$[2];
//@ max_pool_step
static void step$ID$(const uint8_t *x, uint8_t *y) {
  int32_t i, u, v, c;
  for ($EACH_PIXEL$) {
    const int32_t top = i / $OW$ * $STRIDE_H$ - $PAD_H$, left = i % $OW$ * $STRIDE_W$ - $PAD_W$;
    const int32_t u_begin = top < 0 ? 0 : top, v_begin = left < 0 ? 0 : left;
    const int32_t u_end = top + $KH$ > $HEIGHT$ ? $HEIGHT$ : top + $KH$;
    const int32_t v_end = left + $KW$ > $WIDTH$ ? $WIDTH$ : left + $KW$;
    uint8_t *const to = y + i * $CHANNELS$;
    memcpy(to, x + (u_begin * $WIDTH$ + v_begin) * $CHANNELS$, $CHANNELS$);
    for (u = u_begin; u < u_end; ++u) {
      for (v = v_begin; v < v_end; ++v) {
        const uint8_t *const from = x + (u * $WIDTH$ + v) * $CHANNELS$;
        for (c = 0; c < $CHANNELS$; ++c) to[c] = from[c] > to[c] ? from[c] : to[c];
      }
    }
  }
}
//@ avg_pool_step
static void step$ID$(const uint8_t *x, uint8_t *y) {
  int32_t i, u, v, c;
  for ($EACH_PIXEL$) {
    const int32_t top = i / $OW$ * $STRIDE_H$ - $PAD_H$, left = i % $OW$ * $STRIDE_W$ - $PAD_W$;
    const int32_t u_begin = top < 0 ? 0 : top, v_begin = left < 0 ? 0 : left;
    const int32_t u_end = top + $KH$ > $HEIGHT$ ? $HEIGHT$ : top + $KH$;
    const int32_t v_end = left + $KW$ > $WIDTH$ ? $WIDTH$ : left + $KW$;
    const int32_t count = (u_end - u_begin) * (v_end - v_begin);
#if $MANY_COUNTS$
    int32_t size = 0;
    while (count$ID$[size] != count) ++size;
#endif
    for (c = 0; c < $CHANNELS$; ++c) {
      int32_t sum = -$ZERO$ * count;
      for (u = u_begin; u < u_end; ++u) {
        const uint8_t *from = x + (u * $WIDTH$ + v_begin) * $CHANNELS$ + c;
        for (v = v_begin; v < v_end; ++v, from += $CHANNELS$) sum += *from;
      }
#if $MANY_COUNTS$
      y[i * $CHANNELS$ + c] =
          requantize_any(sum, multiplier$ID$[size], shift$ID$[size], $Y_ZERO$, $LOW$, $HIGH$);
#else
      y[i * $CHANNELS$ + c] = requantize_any(sum, $M0$, $SHIFT$, $Y_ZERO$, $LOW$, $HIGH$);
#endif
    }
  }
}
