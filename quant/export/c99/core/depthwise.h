//@ depthwise
/* y[c] of one pixel: channel c of every tap times its own weights. Weights lie in groups of four
   channels, [tap][channel]; the channels left over follow, one row of taps each. */
static void DEPTHWISE(const struct product *p, const uint8_t *const *taps, OUTPUT *y) {
  const int8_t *w = (const int8_t *)p->weights;
  const int32_t *start = p->start;
  SETUP
  const int32_t count = p->length, channels = p->outputs;
  const uint8_t *const *const end = taps + count;
  int32_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    const uint8_t *const *tap = taps;
    int32_t sums[4];
    sums[0] = start[c];
    sums[1] = start[c + 1];
    sums[2] = start[c + 2];
    sums[3] = start[c + 3];
    do {
      const uint8_t *const x = *tap++ + c;
      sums[0] += w[0] * x[0];
      sums[1] += w[1] * x[1];
      sums[2] += w[2] * x[2];
      sums[3] += w[3] * x[3];
      w += 4;
    } while (tap != end);
    STORE(0)
    STORE(1)
    STORE(2)
    STORE(3)
  }
  for (; c < channels; ++c) {
    const uint8_t *const *tap = taps;
    int32_t sums[1];
    sums[0] = start[c];
    do sums[0] += *w++ * (*tap++)[c];
    while (tap != end);
    STORE(0)
  }
}
