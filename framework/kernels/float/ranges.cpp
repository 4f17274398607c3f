#include "framework/kernels/float/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/integer/channels.hpp"

namespace quantrain::kernels {
namespace {

/// Extends the joined range by [min, max]. If either range is NaN, so is the result.
void join(float min, float max, float* joined_min, float* joined_max) {
  if (std::isnan(*joined_min)) return;
  if (std::isnan(min)) {
    *joined_min = *joined_max = min;
    return;
  }
  *joined_min = std::min(*joined_min, min);
  *joined_max = std::max(*joined_max, max);
}

}  // namespace

void min_max_f32(int64_t n, const float* x, float* min, float* max) {
  const FloatTable& kernels = float_table();
  const int64_t blocks = (n + kGrain - 1) / kGrain;
  if (blocks <= 1) return kernels.min_max_f32(n, x, min, max);
  Buffer<float> mins(blocks);
  Buffer<float> maxs(blocks);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t block = begin / kGrain;
    kernels.min_max_f32(end - begin, x + begin, &mins[block], &maxs[block]);
  });
  *min = mins[0];
  *max = maxs[0];
  for (int64_t i = 1; i < blocks; ++i) join(mins[i], maxs[i], min, max);
}

void min_max_channels_f32(
    int64_t n, int64_t channels, int64_t inner, const float* x, float* min, float* max) {
  const FloatTable& kernels = float_table();
  const int64_t repeats = n / (channels * inner);
  parallel_for(channels,
               std::max<int64_t>(1, kGrain / std::max<int64_t>(repeats * inner, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   min[c] = std::numeric_limits<float>::infinity();
                   max[c] = -std::numeric_limits<float>::infinity();
                   for (int64_t repeat = 0; repeat < repeats; ++repeat) {
                     float run_min = 0.0f;
                     float run_max = 0.0f;
                     kernels.min_max_f32(
                         inner, x + (repeat * channels + c) * inner, &run_min, &run_max);
                     join(run_min, run_max, &min[c], &max[c]);
                   }
                 }
               });
}

void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y) {
  const FloatTable& kernels = float_table();
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    kernels.mask_f32(end - begin, x + begin, mask + begin / 8, y + begin);
  });
}

void column_extremes_s32(
    int64_t rows, int64_t channels, const int32_t* acc, int32_t* min, int32_t* max) {
  const FloatTable& kernels = float_table();
  const int64_t grain = row_grain(channels);
  const int64_t blocks = (rows + grain - 1) / grain;
  if (blocks <= 1) return kernels.column_extremes_s32(rows, channels, acc, min, max);
  Buffer<int32_t> low(blocks * channels);
  Buffer<int32_t> high(blocks * channels);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    const int64_t at = begin / grain * channels;
    kernels.column_extremes_s32(
        end - begin, channels, acc + begin * channels, low.data() + at, high.data() + at);
  });
  Buffer<int32_t> unused(channels);
  kernels.column_extremes_s32(blocks, channels, low.data(), min, unused.data());
  kernels.column_extremes_s32(blocks, channels, high.data(), unused.data(), max);
}

void positive_mask_s32(
    int64_t rows, int64_t channels, const int32_t* acc, const int32_t* hi, uint8_t* mask) {
  const FloatTable& kernels = float_table();
  const int64_t n = rows * channels;
  const int64_t period = hi == nullptr ? 16 : period_of(channels);
  Buffer<int32_t> minus_hi(hi == nullptr ? 0 : period);
  for (int64_t i = 0; i < minus_hi.size(); ++i) minus_hi[i] = -hi[i % channels];
  parallel_for(n, round_up(kGrain, period), [&](int64_t begin, int64_t end) {
    kernels.positive_mask_s32(end - begin,
                              period,
                              acc + begin,
                              hi == nullptr ? nullptr : minus_hi.data(),
                              mask + begin / 8);
  });
}

}  // namespace quantrain::kernels
