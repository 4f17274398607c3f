//@ check
#pragma once
#include "core.h"
#define $EACH_I$ \
  i = 0;         \
  i < 9;         \
  ++i
#define $EACH_C$ \
  c = 0;         \
  c < 3;         \
  ++c
#define $OPERANDS$ const uint8_t *x$N$, const uint8_t *x$K$
#define $COUNTERS$ i, i0
enum { $ROWS$ = 3, $CHANNELS$ = 3, $CLASSES$ = 5, $RUN$ = 2, $ROW$ = 6, $AT$ = 4, $X_ROW$ = 6 };
enum { $M$ = 6, $M0$ = 5, $SHIFT$ = 9, $ZERO$ = 1, $ZERO_A$ = 2, $ZERO_B$ = 3, $LOW$ = 0 };
enum { $HIGH$ = 255, $CODE$ = 0, $BYTES$ = 2, $SIZE$ = 3, $REPEAT$ = 2, $STRIDE$ = 2 };
#undef INT64_C
#define INT64_C(n) ((int64_t)9)
#define $FROM$ x
#define $AXES$ (void)y
#define $BODY$ (void)x$K$
#define $FILL$ (void)y
static const uint8_t table$ID$[3 * 256], table$ID$_$N$[256];
static const uint32_t powers$ID$[256];
static const int16_t index$ID$_$K$[$SIZE$];
//@ add_step
static void step$ID$($OPERANDS$, uint8_t *y) {
  int32_t i;
  for ($EACH_I$) {
    int64_t code = 0;
    //@ each ADD_TERMS
    code += (int64_t)x$K$[i] * $M$;
    //@ end
    code = ((code + INT64_C($OFFSET$)) >> $SHIFT$) + $ZERO$;
    code = code < $LOW$ ? $LOW$ : code;
    code = code > $HIGH$ ? $HIGH$ : code;
    y[i] = (uint8_t)code;
  }
}
//@ mul_step
static void step$ID$(const uint8_t *a, const uint8_t *b, uint8_t *y) {
#if $ONE_ROW$
  int32_t c;
  for ($EACH_C$)
    y[c] = requantize_any(((int32_t)a[c] - $ZERO_A$) * ((int32_t)b[c] - $ZERO_B$), $M0$, $SHIFT$,
                          $ZERO$, $LOW$, $HIGH$);
#else
  int32_t i, c;
  for ($EACH_I$)
    for ($EACH_C$)
      y[i * $CHANNELS$ + c] =
          requantize_any(((int32_t)a[i * $CHANNELS$ + c] - $ZERO_A$) * ((int32_t)b[c] - $ZERO_B$),
                         $M0$, $SHIFT$, $ZERO$, $LOW$, $HIGH$);
#endif
}
//@ lookup_step
static void step$ID$(const uint8_t *x, uint8_t *y) {
#if $ONE_TABLE$
  int32_t i;
  for ($EACH_I$) y[i] = table$ID$[x[i]];
#else
  int32_t i, c;
  for ($EACH_I$)
    for ($EACH_C$) y[i * $CHANNELS$ + c] = table$ID$[c * 256 + x[i * $CHANNELS$ + c]];
#endif
}
//@ concat_step
static void step$ID$($OPERANDS$, uint8_t *y) {
  int32_t i, j;
  for (i = 0; i < $ROWS$; ++i) {
    //@ each CONCAT_PARTS
    for (j = 0; j < $RUN$; ++j) y[i * $ROW$ + $AT$ + j] = table$ID$_$N$[x$N$[i * $RUN$ + j]];
    //@ end
  }
}
//@ softmax_step
static void step$ID$(const uint8_t *x, uint8_t *y) {
  int32_t i, j;
  for (i = 0; i < $ROWS$; ++i, x += $CLASSES$, y += $CLASSES$) {
    int32_t max = 0;
    uint64_t sum = 0;
    for (j = 0; j < $CLASSES$; ++j) max = x[j] > max ? x[j] : max;
    for (j = 0; j < $CLASSES$; ++j) sum += powers$ID$[max - x[j]];
    for (j = 0; j < $CLASSES$; ++j) {
      const uint64_t power = (uint64_t)powers$ID$[max - x[j]] * $M0$;
      y[j] = requantize_any(quotient(power, sum), 1, $SHIFT$, $ZERO$, $LOW$, $HIGH$);
    }
  }
}
//@ gather_step
static void step$ID$(const uint8_t *x, uint8_t *y) {
  int32_t $COUNTERS$;
  for (i = 0; i < $ROWS$; ++i) {
    $AXES$;
    x += $X_ROW$;
  }
}
//@ check
static void parts_of_gather(const uint8_t *x, uint8_t *y) {
  int32_t i$K$;
  //@ gather_fill
  memset(y, $CODE$, $BYTES$);
  y += $BYTES$;
  //@ gather_code
  *y++ = *($FROM$);
  //@ gather_codes
  memcpy(y, $FROM$, $BYTES$);
  y += $BYTES$;
  //@ gather_regular
  for (i$K$ = 0; i$K$ < $SIZE$; ++i$K$) {
#if $REPEATS$
    const uint8_t *const x$K$ = $FROM$ + i$K$ / $REPEAT$ * ($STRIDE$);
#else
    const uint8_t *const x$K$ = $FROM$ + i$K$ * ($STRIDE$);
#endif
    $BODY$;
  }
  //@ gather_indexed
  for (i$K$ = 0; i$K$ < $SIZE$; ++i$K$) {
    const uint8_t *x$K$ = $FROM$;
#if $FILLS$
    if (index$ID$_$K$[i$K$] < 0) {
      $FILL$;
      continue;
    }
#endif
    x$K$ += (int32_t)index$ID$_$K$[i$K$] * $STRIDE$;
    $BODY$;
  }
  //@ check
}
