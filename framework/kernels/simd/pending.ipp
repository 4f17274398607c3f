#pragma once

#include "framework/kernels/reference/reference.hpp"

// Kernels whose vectorized bodies are on their way.
namespace quantrain::kernels::simd {

#define QUANTRAIN_PENDING(name) \
  template <class Arch>         \
  inline constexpr auto name = &reference::name;
QUANTRAIN_PENDING(add_f32)
QUANTRAIN_PENDING(sub_f32)
QUANTRAIN_PENDING(mul_f32)
QUANTRAIN_PENDING(div_f32)
QUANTRAIN_PENDING(affine_f32)
QUANTRAIN_PENDING(relu_f32)
QUANTRAIN_PENDING(exp_f32)
QUANTRAIN_PENDING(sigmoid_f32)
QUANTRAIN_PENDING(tanh_f32)
QUANTRAIN_PENDING(sigmoid_backward_f32)
QUANTRAIN_PENDING(tanh_backward_f32)
QUANTRAIN_PENDING(bytes_f32)
QUANTRAIN_PENDING(sgd_f32)
QUANTRAIN_PENDING(adam_f32)
QUANTRAIN_PENDING(sum_f32)
QUANTRAIN_PENDING(column_sums_f32)
QUANTRAIN_PENDING(column_square_sums_f32)
QUANTRAIN_PENDING(column_grad_sums_f32)
QUANTRAIN_PENDING(column_affine_f32)
QUANTRAIN_PENDING(batch_norm_backward_f32)
QUANTRAIN_PENDING(softmax_f32)
QUANTRAIN_PENDING(log_softmax_f32)
QUANTRAIN_PENDING(softmax_backward_f32)
QUANTRAIN_PENDING(log_softmax_backward_f32)
QUANTRAIN_PENDING(cross_entropy_f32)
QUANTRAIN_PENDING(max_pool2d_f32)
QUANTRAIN_PENDING(max_pool2d_backward_f32)
QUANTRAIN_PENDING(avg_pool2d_f32)
QUANTRAIN_PENDING(avg_pool2d_backward_f32)
QUANTRAIN_PENDING(depthwise_f32)
QUANTRAIN_PENDING(depthwise_backward_data_f32)
QUANTRAIN_PENDING(depthwise_backward_weights_f32)
#undef QUANTRAIN_PENDING

}  // namespace quantrain::kernels::simd
