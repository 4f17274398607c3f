#include "framework/kernels/float/elementwise.hpp"

#include <cmath>

#include "framework/core/parallel.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::kernels {

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

void dropout_f32(int64_t n, float p, uint64_t seed, uint64_t counter, const float* x, float* y) {
  constexpr int64_t kBlock = 4096;  // elements of one stream of random numbers
  const auto kernel = float_table().dropout_f32;
  // An element is kept if draw * 2^-24 >= p, where draw is its random number of 24 bits. Both this
  // product and p * 2^24 are exact, so the kernel can check draw >= ceil(p * 2^24) instead.
  const auto dropped = static_cast<int32_t>(std::ceil(double{p} * 0x1p24));
  const float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
  parallel_for(n, kBlock, [&](int64_t i, int64_t end) {
    const uint64_t key = SplitMix64::key(seed, counter, static_cast<uint64_t>(i / kBlock));
    kernel(end - i, {key, dropped, scale}, x + i, y + i);
  });
}

void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  const auto kernel = float_table().bytes_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

}  // namespace quantrain::kernels
