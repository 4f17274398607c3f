#pragma once

#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/float/gemm.hpp"

// Convolutions in float32. They are computed as matrix products, but without im2col. The work is
// split into blocks, which the threads share. There may be 1 to C groups. Depthwise convolutions
// (groups = C = O) have a kernel of their own.
namespace quantrain::kernels {

/// Weights [O, KH, KW, C / groups], packed once for many convolutions with the kernels of
/// chosen_isa(). Kernels of another instruction set cannot read them.
class PackedWeightsF32 {
 public:
  PackedWeightsF32() = default;
  /// Of `shape`, only the shape of the weights and the number of groups matter.
  PackedWeightsF32(const Conv2dShape& shape, const float* w);

  /// The packed panels of group g. A depthwise convolution has no panels: its weights are packed
  /// as one array [KH, KW, C], at g = 0.
  const float* data(int64_t g) const { return data_.data() + g * group_size_; }

 private:
  int64_t group_size_ = 0;
  Buffer<float> data_;
};

/// y = x * w (cross-correlation), then the epilogue (bias [O]). Overwrites y, or adds to it
/// if epilogue.accumulate is set.
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
/// Overwrites grad_x with the gradient with respect to x.
void conv2d_backward_data_f32(const Conv2dShape& shape,
                              const float* grad_y,
                              const float* w,
                              float* grad_x);
/// Overwrites grad_w with the gradient with respect to w. Adds partial sums in a tree, whose shape
/// depends only on the problem size.
void conv2d_backward_weights_f32(const Conv2dShape& shape,
                                 const float* x,
                                 const float* grad_y,
                                 float* grad_w);
/// The same for an x of codes that share one scale. Each task dequantizes the chunk that it reads.
/// If several tasks or groups would read the same codes, all codes are dequantized first.
void conv2d_backward_weights_f32(const Conv2dShape& shape,
                                 const CodeView& x,
                                 const float* grad_y,
                                 float* grad_w);

}  // namespace quantrain::kernels
