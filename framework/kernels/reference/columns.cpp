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

void column_square_sums_f32(
    int64_t rows, int64_t columns, const float* x, const float* mean, float* sums) {
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      const double d = static_cast<double>(x[r * columns + c] - mean[c]);
      total += d * d;
    }
    sums[c] = static_cast<float>(total);
  }
}

void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          float* sum_grad,
                          float* sum_grad_x) {
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    double total_x = 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * columns + c;
      total += static_cast<double>(grad_y[i]);
      total_x += static_cast<double>(grad_y[i]) * static_cast<double>(x[i] - mean[c]);
    }
    sum_grad[c] = static_cast<float>(total);
    sum_grad_x[c] = static_cast<float>(total_x);
  }
}

void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      y[r * columns + c] = x[r * columns + c] * scale[c] + shift[c];
  }
}

void batch_norm_backward_f32(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* mean,
                             const float* grad_y,
                             const float* a,
                             const float* b,
                             const float* d,
                             float* grad_x) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t i = r * columns + c;
      grad_x[i] = a[c] * grad_y[i] + (b[c] * (x[i] - mean[c]) + d[c]);
    }
  }
}

}  // namespace quantrain::kernels::reference
