#include <cmath>

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

void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]) / 255.0f;
}

void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w) {
  for (int64_t i = 0; i < n; ++i) {
    const float g = step.grad_scale * grad[i] + step.weight_decay * w[i];
    float v = g;
    if (velocity != nullptr) {
      if (!step.first_step) v = step.momentum * velocity[i] + g;
      velocity[i] = v;
    }
    w[i] -= step.learning_rate * (step.nesterov ? g + step.momentum * v : v);
  }
}

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// w -= learning_rate * (m / correction1) / (sqrt(v / correction2) + epsilon).   Kingma and Ba 2015,
// algorithm 1
void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w) {
  for (int64_t i = 0; i < n; ++i) {
    float g = step.grad_scale * grad[i];
    if (step.decoupled) {
      w[i] -= step.learning_rate * step.weight_decay * w[i];
    } else {
      g += step.weight_decay * w[i];
    }
    m[i] = step.beta1 * m[i] + (1.0f - step.beta1) * g;
    v[i] = step.beta2 * v[i] + (1.0f - step.beta2) * g * g;
    w[i] -= step.learning_rate * (m[i] / step.correction1) /
            (std::sqrt(v[i] / step.correction2) + step.epsilon);
  }
}

void min_max_f32(int64_t n, const float* x, float* min, float* max) {
  float low = x[0];
  float high = x[0];
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      *min = *max = x[i];
      return;
    }
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  // Which of 0 and -0 comes out depends on the order: say 0.
  *min = low + 0.0f;
  *max = high + 0.0f;
}

void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = (mask[i / 8] >> i % 8 & 1) != 0 ? x[i] : 0.0f;
}

}  // namespace quantrain::kernels::reference
