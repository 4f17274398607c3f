#pragma once

#include <cstdint>

// Elementwise functions in float32, split into blocks over threads.
namespace quantrain::kernels {

/// In all functions below, the result may overwrite a float operand. For example,
/// add_f32 may write y over b.
void add_f32(int64_t n, const float* a, const float* b, float* y);
void sub_f32(int64_t n, const float* a, const float* b, float* y);
void mul_f32(int64_t n, const float* a, const float* b, float* y);
void div_f32(int64_t n, const float* a, const float* b, float* y);
/// y = x * scale + shift.
void affine_f32(int64_t n, const float* x, float scale, float shift, float* y);

/// y = min(max(x, 0), hi), where hi >= 0 may be infinite. If mask is not null, its bit i is set if
/// 0 < x[i] < hi, else cleared.
void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask);
void exp_f32(int64_t n, const float* x, float* y);
/// 1 / (1 + exp(-x)).
void sigmoid_f32(int64_t n, const float* x, float* y);
void tanh_f32(int64_t n, const float* x, float* y);
/// grad_x = grad_y * y * (1 - y).
void sigmoid_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x);
/// grad_x = grad_y * (1 - y * y).
void tanh_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x);

/// y[i] = 0 with probability p in (0, 1], else x[i] / (1 - p). Which elements are dropped depends
/// only on p, seed, counter and i.
void dropout_f32(int64_t n, float p, uint64_t seed, uint64_t counter, const float* x, float* y);

/// y[i] = x[i] / 255: the real value of a pixel.
void bytes_f32(int64_t n, const uint8_t* x, float* y);

}  // namespace quantrain::kernels
