#pragma once

#include <cstdint>

// Reductions of matrices, and functions with parameters for each row or column. Threads share the
// work in blocks. Block sizes depend on the problem size alone. Each block is summed in 16 lanes,
// and a fixed tree adds up the blocks. So results have the same bits with any number of threads,
// and the same bits on AVX2 as on AVX-512.
namespace quantrain::kernels {

/// Sum of all elements.
float sum_f32(int64_t n, const float* x);
/// y[c] = sum over rows of x[row, c], for gradients of biases.
void sum_rows_f32(int64_t rows, int64_t columns, const float* x, float* y);

/// y[r, c] = x[r, c] * factors[r]; y may be x.
void scale_rows_f32(int64_t rows, int64_t columns, const float* x, const float* factors, float* y);
/// dots[r] = sum over columns of a[r, c] * b[r, c]; each product is rounded.
void row_dots_f32(int64_t rows, int64_t columns, const float* a, const float* b, float* dots);

/// Mean and population variance of each column, in two passes.
void column_moments_f32(
    int64_t rows, int64_t columns, const float* x, float* mean, float* variance);
/// y[r, c] = x[r, c] * scale[c] + shift[c].
void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y);
/// sum_grad[c] = sum of grad_y[:, c]; sum_grad_x[c] = sum of grad_y[:, c] * (x[:, c] - mean[c]).
void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          float* sum_grad,
                          float* sum_grad_x);
/// grad_x[r, c] = a[c] * grad_y[r, c] + b[c] * (x[r, c] - mean[c]) + d[c].
void batch_norm_backward_f32(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* mean,
                             const float* grad_y,
                             const float* a,
                             const float* b,
                             const float* d,
                             float* grad_x);

}  // namespace quantrain::kernels
