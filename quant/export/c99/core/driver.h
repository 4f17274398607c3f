//@ product_pair
/* y0[o] and y1[o] of two pixels with the codes x0 and x1, for all outputs. */
NOINLINE void PRODUCT_pair(const struct product *p, const uint8_t *x0, const uint8_t *x1,
                         uint32_t *columns, OUTPUT *y0, OUTPUT *y1) {
  WEIGHT w = (WEIGHT)p->weights;
  const int32_t *start = p->start;
  SETUP
  const int32_t length = p->length;
  int32_t left = p->outputs;
  EXPAND_PAIR
  BLOCKS
  for (; left >= 4; left -= 4) {
    int32_t sums[8];
    sums[0] = start[0] SHIFT0;
    sums[1] = start[1] SHIFT0;
    sums[2] = start[2] SHIFT0;
    sums[3] = start[3] SHIFT0;
    sums[4] = start[0] SHIFT1;
    sums[5] = start[1] SHIFT1;
    sums[6] = start[2] SHIFT1;
    sums[7] = start[3] SHIFT1;
    SUMS_PAIR
    STORE_PAIR(0)
    STORE_PAIR(1)
    STORE_PAIR(2)
    STORE_PAIR(3)
    w += 4 * (GROUP_STEP);
    start += 4;
    y0 += 4;
    y1 += 4;
    NEXT_GROUP
  }
  ROWS
}
//@ product_one
/* y[o] of one pixel with the codes x, for all outputs. */
NOINLINE void PRODUCT_one(const struct product *p, const uint8_t *x, OUTPUT *y) {
  WEIGHT w = (WEIGHT)p->weights;
  const int32_t *start = p->start;
  SETUP
  const int32_t length = p->length;
  int32_t left = p->outputs;
  EXPAND_ONE
  BLOCKS
  for (; left >= 4; left -= 4) {
    int32_t sums[4];
    sums[0] = start[0] SHIFT0;
    sums[1] = start[1] SHIFT0;
    sums[2] = start[2] SHIFT0;
    sums[3] = start[3] SHIFT0;
    SUMS_ONE
    STORE_ONE(0)
    STORE_ONE(1)
    STORE_ONE(2)
    STORE_ONE(3)
    w += 4 * (GROUP_STEP);
    start += 4;
    y += 4;
    NEXT_GROUP
  }
  ROWS
}
//@ pair_rows
  for (; left > 0; --left) {
    int32_t sums[5];
    sums[0] = ROW0;
    sums[4] = ROW1;
    STORE_PAIR(0)
    w += ROW_STEP;
    ++start;
    ++y0;
    ++y1;
    NEXT_ROW
  }
//@ one_rows
  for (; left > 0; --left) {
    int32_t sums[1];
    sums[0] = ROW0;
    STORE_ONE(0)
    w += ROW_STEP;
    ++start;
    ++y;
    NEXT_ROW
  }
