#include "framework/kernels/elementwise.hpp"

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch.hpp"

namespace quantrain::kernels {
namespace {

// Elements of a block: a few microseconds of work, and a multiple of 8, so that no two blocks share
// a byte of a mask.
constexpr int64_t kGrain = 32768;

}  // namespace

void add_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = table().add_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void sub_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = table().sub_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void mul_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = table().mul_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void div_f32(int64_t n, const float* a, const float* b, float* y) {
  const auto kernel = table().div_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, a + i, b + i, y + i); });
}

void affine_f32(int64_t n, const float* x, float scale, float shift, float* y) {
  const auto kernel = table().affine_f32;
  parallel_for(
      n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, scale, shift, y + i); });
}

void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask) {
  const auto kernel = table().relu_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, x + i, hi, y + i, mask == nullptr ? nullptr : mask + i / 8);
  });
}

void exp_f32(int64_t n, const float* x, float* y) {
  const auto kernel = table().exp_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

void sigmoid_f32(int64_t n, const float* x, float* y) {
  const auto kernel = table().sigmoid_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

void tanh_f32(int64_t n, const float* x, float* y) {
  const auto kernel = table().tanh_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

void sigmoid_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  const auto kernel = table().sigmoid_backward_f32;
  parallel_for(
      n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, y + i, grad_y + i, grad_x + i); });
}

void tanh_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  const auto kernel = table().tanh_backward_f32;
  parallel_for(
      n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, y + i, grad_y + i, grad_x + i); });
}

void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w) {
  const auto kernel = table().sgd_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, step, grad + i, velocity == nullptr ? nullptr : velocity + i, w + i);
  });
}

void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w) {
  const auto kernel = table().adam_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, step, grad + i, m + i, v + i, w + i);
  });
}

void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  const auto kernel = table().bytes_f32;
  parallel_for(n, kGrain, [&](int64_t i, int64_t end) { kernel(end - i, x + i, y + i); });
}

}  // namespace quantrain::kernels
