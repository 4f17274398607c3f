#include <cstring>

#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {

void sum_f32(int64_t n, const float* x, float* sum) {
  double total = 0.0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
  *sum = static_cast<float>(total);
}

void scale_rows_f32(int64_t rows, int64_t columns, const float* x, const float* factors, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[r * columns + c] * factors[r];
  }
}

void scale_columns_s32_f32(int64_t rows, int64_t columns, const double* scale, float* x) {
  for (int64_t i = 0; i < rows * columns; ++i) {
    int32_t sum = 0;
    std::memcpy(&sum, x + i, sizeof sum);
    x[i] = static_cast<float>(scale[i % columns] * sum);
  }
}

void row_dots_f32(int64_t rows, int64_t columns, const float* a, const float* b, float* dots) {
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0.0;
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i)
      total += static_cast<double>(a[i] * b[i]);
    dots[r] = static_cast<float>(total);
  }
}

void column_sums_f32(int64_t rows, int64_t columns, const float* x, float* sums) {
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    for (int64_t r = 0; r < rows; ++r) total += static_cast<double>(x[r * columns + c]);
    sums[c] = static_cast<float>(total);
  }
}

// min and max may be null.
void column_square_sums_f32(int64_t rows,
                            int64_t columns,
                            const float* x,
                            const float* mean,
                            float* sums,
                            float* min,
                            float* max) {
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    float low = x[c];
    float high = x[c];
    for (int64_t r = 0; r < rows; ++r) {
      const float v = x[r * columns + c];
      const double d = static_cast<double>(v - mean[c]);
      total += d * d;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    sums[c] = static_cast<float>(total);
    if (min == nullptr) continue;
    min[c] = low;
    max[c] = high;
  }
}

namespace {

/// Element i of the gradient, or 0 where the mask has a 0.
float masked(const float* grad, const uint8_t* mask, int64_t i) {
  return mask == nullptr || (mask[i / 8] >> i % 8 & 1) != 0 ? grad[i] : 0.0f;
}

}  // namespace

void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          const uint8_t* mask,
                          float* sum_grad,
                          float* sum_grad_x) {
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    double total_x = 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * columns + c;
      const auto grad = static_cast<double>(masked(grad_y, mask, i));
      total += grad;
      total_x += grad * static_cast<double>(x[i] - mean[c]);
    }
    sum_grad[c] = static_cast<float>(total);
    sum_grad_x[c] = static_cast<float>(total_x);
  }
}

void column_affine_f32(int64_t n,
                       int64_t first,
                       int64_t period,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = (first + i) % period;
    y[i] = x[i] * scale[c] + shift[c];
  }
}

void batch_norm_backward_f32(int64_t n,
                             int64_t first,
                             int64_t period,
                             const BatchNormBackwardF32& p) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = (first + i) % period;
    p.grad_x[i] = p.a[c] * masked(p.grad_y, p.mask, i) + (p.b[c] * (p.x[i] - p.mean[c]) + p.d[c]);
  }
}

}  // namespace quantrain::kernels::reference
