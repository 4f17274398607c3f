#pragma once

#include <cstdint>

#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/params.hpp"

// Everything else that an epoch touches, in float32, cut into blocks over threads. Reductions run
// in 16 virtual lanes over blocks cut by problem size and join in a fixed tree: the same bits at
// any number of threads, on AVX2 and AVX-512.
namespace quantrain::kernels {

/// y may be an operand in all of these.
void add_f32(int64_t n, const float* a, const float* b, float* y);
void sub_f32(int64_t n, const float* a, const float* b, float* y);
void mul_f32(int64_t n, const float* a, const float* b, float* y);
void div_f32(int64_t n, const float* a, const float* b, float* y);
/// y = x * scale + shift.
void affine_f32(int64_t n, const float* x, float scale, float shift, float* y);

/// y = min(max(x, 0), hi), hi = 6 or infinity. Where mask is not null, bit i is 0 < x[i] < hi.
void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask);
void exp_f32(int64_t n, const float* x, float* y);
/// 1 / (1 + exp(-x)).
void sigmoid_f32(int64_t n, const float* x, float* y);
void tanh_f32(int64_t n, const float* x, float* y);
/// grad_x = grad_y * y * (1 - y), or grad_y * (1 - y * y).
void sigmoid_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x);
void tanh_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x);

/// Sum of all elements.
float sum_f32(int64_t n, const float* x);
/// y[c] = sum over rows of x[row, c]: gradients of biases.
void sum_rows_f32(int64_t rows, int64_t columns, const float* x, float* y);

/// Each of `rows` rows of `columns`: y = softmax(x), or log_softmax(x) where log is set.
void softmax_f32(int64_t rows, int64_t columns, bool log, const float* x, float* y);
/// softmax: grad_x = y * (grad_y - sum(grad_y * y)); log_softmax: grad_x = grad_y - exp(y) *
/// sum(grad_y).
void softmax_backward_f32(
    int64_t rows, int64_t columns, bool log, const float* y, const float* grad_y, float* grad_x);
/// Mean over rows of -log softmax(x)[label]; grad_x (null if not wanted) = (softmax(x) - one hot) /
/// rows.
float cross_entropy_f32(
    int64_t rows, int64_t columns, const float* x, const int32_t* labels, float* grad_x);

/// Largest element of each window and its position in the window, row by row, the first among
/// equals; NaN wins over everything. position may be null; else windows have at most
/// kLargestPoolWindow elements.
void max_pool2d_f32(const Conv2dShape& shape, const float* x, float* y, uint16_t* position);
/// grad_x is overwritten.
void max_pool2d_backward_f32(const Conv2dShape& shape,
                             const float* grad_y,
                             const uint16_t* position,
                             float* grad_x);
/// Mean over the elements inside the image.
void avg_pool2d_f32(const Conv2dShape& shape, const float* x, float* y);
void avg_pool2d_backward_f32(const Conv2dShape& shape, const float* grad_y, float* grad_x);

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

/// Steps of the optimizers: params.hpp has the formulas.
void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w);
void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w);

/// y[i] = x[i] / 255: the real value of a pixel.
void bytes_f32(int64_t n, const uint8_t* x, float* y);

/// Smallest and largest element; +-inf as they are, NaN if any. n >= 1.
void min_max_f32(int64_t n, const float* x, float* min, float* max);
/// For each of `channels` runs of `inner` elements, repeated over the tensor.
void min_max_channels_f32(
    int64_t n, int64_t channels, int64_t inner, const float* x, float* min, float* max);
/// y[i] = bit i of mask ? x[i] : 0; y may be x.
void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y);

}  // namespace quantrain::kernels
