#include <cmath>

#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {
namespace {

float largest(int64_t n, const float* x) {
  float max = x[0];
  for (int64_t i = 1; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

double exp_sum(int64_t n, const float* x, float max) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i] - max));
  return sum;
}

}  // namespace

// The largest element is subtracted first, so that nothing overflows.
void softmax_f32(int64_t rows, int64_t columns, const float* x, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const float max = largest(columns, x);
    const double sum = exp_sum(columns, x, max);
    for (int64_t c = 0; c < columns; ++c) {
      y[c] = static_cast<float>(std::exp(static_cast<double>(x[c] - max)) / sum);
    }
  }
}

void log_softmax_f32(int64_t rows, int64_t columns, const float* x, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const float max = largest(columns, x);
    const auto log_sum = static_cast<float>(std::log(exp_sum(columns, x, max)));
    for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - max) - log_sum;
  }
}

void softmax_backward_f32(
    int64_t rows, int64_t columns, const float* y, const float* grad_y, float* grad_x) {
  for (int64_t r = 0; r < rows; ++r, y += columns, grad_y += columns, grad_x += columns) {
    double dot = 0.0;
    for (int64_t c = 0; c < columns; ++c)
      dot += static_cast<double>(grad_y[c]) * static_cast<double>(y[c]);
    for (int64_t c = 0; c < columns; ++c) grad_x[c] = y[c] * (grad_y[c] - static_cast<float>(dot));
  }
}

void log_softmax_backward_f32(
    int64_t rows, int64_t columns, const float* y, const float* grad_y, float* grad_x) {
  for (int64_t r = 0; r < rows; ++r, y += columns, grad_y += columns, grad_x += columns) {
    double sum = 0.0;
    for (int64_t c = 0; c < columns; ++c) sum += static_cast<double>(grad_y[c]);
    for (int64_t c = 0; c < columns; ++c)
      grad_x[c] = grad_y[c] - std::exp(y[c]) * static_cast<float>(sum);
  }
}

// loss[r] = log(sum(exp(x - max))) - (x[label] - max);
// grad_x = scale * (softmax(x) - one_hot(label)).
void cross_entropy_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const int32_t* labels,
                       float scale,
                       float* loss,
                       float* grad_x) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    const float max = largest(columns, x);
    const double sum = exp_sum(columns, x, max);
    loss[r] = static_cast<float>(std::log(sum)) - (x[labels[r]] - max);
    if (grad_x == nullptr) continue;
    for (int64_t c = 0; c < columns; ++c) {
      const double p = std::exp(static_cast<double>(x[c] - max)) / sum;
      grad_x[r * columns + c] = static_cast<float>(p - (c == labels[r] ? 1.0 : 0.0)) * scale;
    }
  }
}

}  // namespace quantrain::kernels::reference
