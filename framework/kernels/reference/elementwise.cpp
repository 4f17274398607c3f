#include <cmath>

#include "framework/core/splitmix64.hpp"
#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {

void add_f32(int64_t n, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void sub_f32(int64_t n, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}

void mul_f32(int64_t n, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void div_f32(int64_t n, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] / b[i];
}

void affine_f32(int64_t n, const float* x, float scale, float shift, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

// NaN stays NaN, and its bit of the mask is 0.
void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask) {
  for (int64_t i = 0; i < n; ++i) {
    if (mask != nullptr && i % 8 == 0) mask[i / 8] = 0;
    if (mask != nullptr && x[i] > 0.0f && x[i] < hi)
      mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    y[i] = x[i] < 0.0f ? 0.0f : x[i] > hi ? hi : x[i];
  }
}

void exp_f32(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

void sigmoid_f32(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1.0f / (1.0f + std::exp(-x[i]));
}

void tanh_f32(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

void sigmoid_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  for (int64_t i = 0; i < n; ++i) grad_x[i] = grad_y[i] * (y[i] * (1.0f - y[i]));
}

void tanh_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  for (int64_t i = 0; i < n; ++i) grad_x[i] = grad_y[i] * (1.0f - y[i] * y[i]);
}

void dropout_f32(int64_t n, const DropoutF32& p, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = SplitMix64::mix(p.key + static_cast<uint64_t>(i + 1) * SplitMix64::kStep);
    y[i] = static_cast<int32_t>(bits >> 40) >= p.dropped ? x[i] * p.scale : 0.0f;
  }
}

void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]) / 255.0f;
}

}  // namespace quantrain::kernels::reference
