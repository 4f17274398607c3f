//@ check
#pragma once
#include "blocks.h"
#include "bytes.h"
#if $CODES$
typedef uint8_t $OUTPUT$;
#else
typedef int32_t $OUTPUT$;
#endif
#if $PACKED$
typedef uint32_t $WEIGHT$;
#else
typedef int8_t $WEIGHT$;
#endif
enum { $BITS$ = 4, $FIELDS$ = 8, $EXCESS$ = 8, $FACTOR$ = 1 };
//@ product_pair
/* y0[o] and y1[o] of two pixels with the codes x0 and x1, for all outputs. */
NOINLINE void $NAME$(const struct product *p, const uint8_t *x0, const uint8_t *x1,
                     uint32_t *columns, $OUTPUT$ *y0, $OUTPUT$ *y1) {
  const $WEIGHT$ *w = (const $WEIGHT$ *)p->weights;
  const int32_t *start = p->start;
#if $CODES$
  const int32_t *multiplier = p->multiplier;
  const uint8_t *shift = p->shift;
  const int32_t zero = p->zero, low = p->low, high = p->high;
#endif
  const int32_t length = p->length;
#if $PACKED$
  const int32_t row = whole_words(length, $BITS$) / $FIELDS$; /* words */
#endif
  int32_t left = p->outputs;
#if $PACKED$
  int32_t total[2], excess0, excess1;
  expand_pair_packed(columns, x0, x1, length, $BITS$, total);
  excess0 = $EXCESS$ * total[0];
  excess1 = $EXCESS$ * total[1];
#else
  expand_pair(columns, x0, x1, length);
#endif
#if defined(CORE_BLOCKS)
  if (left >= 16) {
    const int32_t groups = left / 4 * 4;
    int32_t o = 0, r;
    while (groups - o >= 8) {
      int32_t sums[32];
      /* If 8 or 12 outputs remain, a whole block is faster, although it recomputes outputs of the
         previous block. If 4 remain, it is not. */
      if (o > groups - 16) o = groups - 16;
      for (r = 0; r < 16; ++r) {
#if $PACKED$
        sums[r] = $BITS$ == 1 ? 0 : -excess0;
        sums[16 + r] = $BITS$ == 1 ? 0 : -excess1;
#else
        sums[r] = start[o + r];
        sums[16 + r] = start[o + r];
#endif
      }
#if $PACKED$
      sums_16x2_packed(w + o * row, columns, length, $BITS$, sums);
      for (r = 0; r < 16; r += 4) {
        end_4(start + o + r, excess0, $BITS$, sums + r);
        end_4(start + o + r, excess1, $BITS$, sums + 16 + r);
      }
#else
      sums_16x2(w + o * length, x0, x1, columns, length, sums);
#endif
#if $CODES$
      store_block(p, sums, multiplier + o, shift + o, zero, low, high, y0 + o);
      store_block(p, sums + 16, multiplier + o, shift + o, zero, low, high, y1 + o);
#else
      memcpy(y0 + o, sums, 16 * sizeof *sums);
      memcpy(y1 + o, sums + 16, 16 * sizeof *sums);
#endif
      o += 16;
    }
#if $PACKED$
    w += o * row;
#else
    w += o * (GROUP_ROW(length));
#endif
    start += o;
    y0 += o;
    y1 += o;
    left -= o;
#if $CODES$
    multiplier += o;
    shift += o;
#endif
  }
#endif
  for (; left >= 4; left -= 4) {
#if $PACKED$
    int32_t sums[8];
    begin_4(excess0, $BITS$, sums);
    begin_4(excess1, $BITS$, sums + 4);
    sums_4x2_packed(w, columns, length, $BITS$, sums);
    end_4(start, excess0, $BITS$, sums);
    end_4(start, excess1, $BITS$, sums + 4);
#else
    int32_t sums[8];
    sums[0] = start[0];
    sums[1] = start[1];
    sums[2] = start[2];
    sums[3] = start[3];
    sums[4] = start[0];
    sums[5] = start[1];
    sums[6] = start[2];
    sums[7] = start[3];
    sums_4x2(w, x0, x1, columns, length, sums);
#endif
#if $CODES$
    store_pair(p, sums[0], sums[4], multiplier[0], shift[0], zero, low, high, y0, y1);
    store_pair(p, sums[1], sums[5], multiplier[1], shift[1], zero, low, high, y0 + 1, y1 + 1);
    store_pair(p, sums[2], sums[6], multiplier[2], shift[2], zero, low, high, y0 + 2, y1 + 2);
    store_pair(p, sums[3], sums[7], multiplier[3], shift[3], zero, low, high, y0 + 3, y1 + 3);
#else
    y0[0] = sums[0];
    y1[0] = sums[4];
    y0[1] = sums[1];
    y1[1] = sums[5];
    y0[2] = sums[2];
    y1[2] = sums[6];
    y0[3] = sums[3];
    y1[3] = sums[7];
#endif
#if $PACKED$
    w += 4 * row;
#else
    w += 4 * (GROUP_ROW(length));
#endif
    start += 4;
    y0 += 4;
    y1 += 4;
#if $CODES$
    multiplier += 4;
    shift += 4;
#endif
  }
#if $SINGLE_ROWS$
  for (; left > 0; --left) {
    int32_t sums[5];
#if $PACKED$
    sums[0] = start[0] - excess0 + $FACTOR$ * sum_row_packed(w, x0, length, $BITS$);
    sums[4] = start[0] - excess1 + $FACTOR$ * sum_row_packed(w, x1, length, $BITS$);
#else
    sums[0] = sum_row(w, x0, length, *start);
    sums[4] = sum_row(w, x1, length, *start);
#endif
#if $CODES$
    store_pair(p, sums[0], sums[4], multiplier[0], shift[0], zero, low, high, y0, y1);
#else
    y0[0] = sums[0];
    y1[0] = sums[4];
#endif
#if $PACKED$
    w += row;
#else
    w += length;
#endif
    ++start;
    ++y0;
    ++y1;
#if $CODES$
    ++multiplier;
    ++shift;
#endif
  }
#endif
}
//@ product_one
/* y[o] of one pixel with the codes x, for all outputs. */
NOINLINE void $NAME$(const struct product *p, const uint8_t *x, uint32_t *columns, $OUTPUT$ *y) {
  const $WEIGHT$ *w = (const $WEIGHT$ *)p->weights;
  const int32_t *start = p->start;
#if $CODES$
  const int32_t *multiplier = p->multiplier;
  const uint8_t *shift = p->shift;
  const int32_t zero = p->zero, low = p->low, high = p->high;
#endif
  const int32_t length = p->length;
#if $PACKED$
  const int32_t row = whole_words(length, $BITS$) / $FIELDS$; /* words */
#endif
  int32_t left = p->outputs;
#if $PACKED$
  const int32_t excess = $EXCESS$ * sum_codes(x, length);
#endif
  (void)columns;
#if defined(CORE_BLOCKS)
  if (left >= 16) {
    const int32_t groups = left / 4 * 4;
    int32_t o = 0, r;
    while (groups - o >= 8) {
      int32_t sums[16];
      if (o > groups - 16) o = groups - 16;
#if $PACKED$
      for (r = 0; r < 16; ++r) sums[r] = $BITS$ == 1 ? 0 : -excess;
      sums_16x1_packed(w + o * row, x, length, $BITS$, sums);
      for (r = 0; r < 16; r += 4) end_4(start + o + r, excess, $BITS$, sums + r);
#else
      for (r = 0; r < 16; ++r) sums[r] = start[o + r];
      sums_16x1(w + o * length, x, length, sums);
#endif
#if $CODES$
      store_block(p, sums, multiplier + o, shift + o, zero, low, high, y + o);
#else
      memcpy(y + o, sums, 16 * sizeof *sums);
#endif
      o += 16;
    }
#if $PACKED$
    w += o * row;
#else
    w += o * (GROUP_ROW(length));
#endif
    start += o;
    y += o;
    left -= o;
#if $CODES$
    multiplier += o;
    shift += o;
#endif
  }
#endif
  for (; left >= 4; left -= 4) {
#if $PACKED$
    int32_t sums[4];
    begin_4(excess, $BITS$, sums);
    sums_4x1_packed(w, x, length, $BITS$, sums);
    end_4(start, excess, $BITS$, sums);
#else
    int32_t sums[4];
    sums[0] = start[0];
    sums[1] = start[1];
    sums[2] = start[2];
    sums[3] = start[3];
    sums_4x1(w, x, length, sums);
#endif
#if $CODES$
    y[0] = code(p, sums[0], multiplier[0], shift[0], zero, low, high);
    y[1] = code(p, sums[1], multiplier[1], shift[1], zero, low, high);
    y[2] = code(p, sums[2], multiplier[2], shift[2], zero, low, high);
    y[3] = code(p, sums[3], multiplier[3], shift[3], zero, low, high);
#else
    y[0] = sums[0];
    y[1] = sums[1];
    y[2] = sums[2];
    y[3] = sums[3];
#endif
#if $PACKED$
    w += 4 * row;
#else
    w += 4 * (GROUP_ROW(length));
#endif
    start += 4;
    y += 4;
#if $CODES$
    multiplier += 4;
    shift += 4;
#endif
  }
#if $SINGLE_ROWS$
  for (; left > 0; --left) {
    int32_t sums[1];
#if $PACKED$
    sums[0] = start[0] - excess + $FACTOR$ * sum_row_packed(w, x, length, $BITS$);
#else
    sums[0] = sum_row(w, x, length, *start);
#endif
#if $CODES$
    y[0] = code(p, sums[0], multiplier[0], shift[0], zero, low, high);
#else
    y[0] = sums[0];
#endif
#if $PACKED$
    w += row;
#else
    w += length;
#endif
    ++start;
    ++y;
#if $CODES$
    ++multiplier;
    ++shift;
#endif
  }
#endif
}
