#pragma once

#include <cstdint>

// Softmax of rows and functions built on it, in blocks of rows over threads.
namespace quantrain::kernels {

/// y = softmax(x), or log_softmax(x) if log is set, for each of `rows` rows of `columns` elements.
void softmax_f32(int64_t rows, int64_t columns, bool log, const float* x, float* y);
/// softmax: grad_x = y * (grad_y - sum(grad_y * y)); log_softmax: grad_x = grad_y - exp(y) *
/// sum(grad_y).
void softmax_backward_f32(
    int64_t rows, int64_t columns, bool log, const float* y, const float* grad_y, float* grad_x);
/// Mean over rows of -log softmax(x)[label]. Also writes, unless grad_x is null,
///   grad_x = (softmax(x) - one hot) / rows.
float cross_entropy_f32(
    int64_t rows, int64_t columns, const float* x, const int32_t* labels, float* grad_x);

}  // namespace quantrain::kernels
