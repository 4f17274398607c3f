#pragma once

#include <cstdint>

// Softmax of rows, and functions built on it. Threads share the work in blocks of rows.
namespace quantrain::kernels {

/// y = softmax(x), or log_softmax(x) if log is set, for each of `rows` rows of `columns` elements.
void softmax_f32(int64_t rows, int64_t columns, bool log, const float* x, float* y);
/// grad_x = y * (grad_y - sum(grad_y * y)) for softmax, or, if log is set,
/// grad_x = grad_y - exp(y) * sum(grad_y) for log_softmax.
void softmax_backward_f32(
    int64_t rows, int64_t columns, bool log, const float* y, const float* grad_y, float* grad_x);
/// Mean over rows of -log softmax(x)[label]. If grad_x is not null, also writes
///   grad_x = (softmax(x) - one_hot(label)) / rows.
float cross_entropy_f32(
    int64_t rows, int64_t columns, const float* x, const int32_t* labels, float* grad_x);

}  // namespace quantrain::kernels
