#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

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

/// Mean and population variance of each column, in two passes. Unless min is null, also the
/// smallest and largest element of each column; these are unspecified if a column has a NaN.
void column_moments_f32(int64_t rows,
                        int64_t columns,
                        const float* x,
                        float* mean,
                        float* variance,
                        float* min = nullptr,
                        float* max = nullptr);
/// The same for integer sums: x's memory holds int32, and x[r, c] first becomes
/// float(scale[c] * that integer), with the product in double.
void column_moments_s32_f32(int64_t rows,
                            int64_t columns,
                            const double* scale,
                            float* x,
                            float* mean,
                            float* variance,
                            float* min = nullptr,
                            float* max = nullptr);
/// y[r, c] = x[r, c] * scale[c] + shift[c]; y may be x. If hi is not 0, a ReLU follows, as in
/// relu_f32: y is clamped to [0, hi], and mask, unless null, tells which elements pass a gradient.
void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float hi,
                       float* y,
                       uint8_t* mask);
/// Quantizes the floats x[r, c] * scale[c] + shift[c], which are not stored. Otherwise like
/// quantize_f32_u8 (integer.hpp).
bool quantize_columns_f32_u8(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* scale,
                             const float* shift,
                             const QuantizeF32& q,
                             uint8_t* codes,
                             uint8_t* mask);
/// sum_grad[c] = sum of g[:, c]; sum_grad_x[c] = sum of g[:, c] * (x[:, c] - mean[c]). g is grad_y
/// where the mask has a 1, else 0. A null mask has only ones; with another, `columns` is a multiple
/// of 8.
void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          const uint8_t* mask,
                          float* sum_grad,
                          float* sum_grad_x);
/// BatchNormBackwardF32, for any number of columns.
void batch_norm_backward_f32(int64_t rows, int64_t columns, const BatchNormBackwardF32& p);

}  // namespace quantrain::kernels
