#pragma once

#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/float/gemm.hpp"

// Convolutions in float32 as implicit matrix products (no im2col of the whole input), cut into
// blocks over threads. Groups from 1 to C; depthwise (groups = C) has a kernel of its own.
namespace quantrain::kernels {

/// Weights [O, KH, KW, C / groups] of many convolutions, laid out once for the kernels of
/// chosen_isa(); not for those of another one.
class PackedWeightsF32 {
 public:
  PackedWeightsF32() = default;
  /// Only the shape of the weights and the groups are taken from `shape`.
  PackedWeightsF32(const Conv2dShape& shape, const float* w);

  /// Panels of group g; for a depthwise convolution the weights as [KH, KW, C], g is 0.
  const float* data(int64_t g) const { return data_.data() + g * group_size_; }

 private:
  int64_t group_size_ = 0;
  Buffer<float> data_;
};

/// y = x * w (cross-correlation), then the epilogue (bias [O]); y is overwritten unless
/// epilogue.accumulate.
void conv2d_f32(const Conv2dShape& shape,
                const float* x,
                const float* w,
                float* y,
                const EpilogueF32& epilogue = {});
void conv2d_f32(const Conv2dShape& shape,
                const float* x,
                const PackedWeightsF32& w,
                float* y,
                const EpilogueF32& epilogue = {});
/// grad_x is overwritten.
void conv2d_backward_data_f32(const Conv2dShape& shape,
                              const float* grad_y,
                              const float* w,
                              float* grad_x);
/// grad_w is overwritten. Partial sums are joined in a fixed tree cut by problem size.
void conv2d_backward_weights_f32(const Conv2dShape& shape,
                                 const float* x,
                                 const float* grad_y,
                                 float* grad_w);
/// The same for codes of one scale: each task dequantizes the chunk that it reads, if no other task
/// reads it.
void conv2d_backward_weights_f32(const Conv2dShape& shape,
                                 const CodeView& x,
                                 const float* grad_y,
                                 float* grad_w);

}  // namespace quantrain::kernels
