#include "framework/kernels/float/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"

namespace quantrain::kernels {
namespace {

// Elements of a block: a few microseconds of work, and a multiple of 8, so that no two blocks share
// a byte of a mask.
constexpr int64_t kGrain = 32768;

}  // namespace

void add_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = float_table().add_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void sub_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = float_table().sub_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void mul_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = float_table().mul_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void div_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = float_table().div_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void affine_f32(int64_t n, const float* x, float scale, float shift, float* y) {
  const auto kernel = float_table().affine_f32;
  parallel_for(
      n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, scale, shift, y + i); });
}

void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask) {
  const auto kernel = float_table().relu_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, x + i, hi, y + i, mask == nullptr ? nullptr : mask + i / 8);
  });
}

void exp_f32(int64_t n, const float* x, float* y) {
  const auto kernel = float_table().exp_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

void sigmoid_f32(int64_t n, const float* x, float* y) {
  const auto kernel = float_table().sigmoid_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

void tanh_f32(int64_t n, const float* x, float* y) {
  const auto kernel = float_table().tanh_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

void sigmoid_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  const auto kernel = float_table().sigmoid_backward_f32;
  parallel_for(
      n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, y + i, grad_y + i, grad_x + i); });
}

void tanh_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  const auto kernel = float_table().tanh_backward_f32;
  parallel_for(
      n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, y + i, grad_y + i, grad_x + i); });
}

void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w) {
  const auto kernel = float_table().sgd_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, step, grad + i, velocity == nullptr ? nullptr : velocity + i, w + i);
  });
}

void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w) {
  const auto kernel = float_table().adam_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, step, grad + i, m + i, v + i, w + i);
  });
}

void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  const auto kernel = float_table().bytes_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

namespace {

/// [min, max] of both, NaN if any.
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

}  // namespace quantrain::kernels
