#pragma once

#include "framework/kernels/float/conv.hpp"

namespace quantrain::kernels {

/// Transposes weights [c, kh, kw] to [kh, kw, c].
Buffer<float> taps_outermost(const Conv2dShape& s, const float* w);

/// In this function, w is [kh, kw, c]. In the gradients below, w and grad_w are [c, kh, kw].
void depthwise_f32(
    const Conv2dShape& s, const float* x, const float* w, float* y, const EpilogueF32& epilogue);
void depthwise_backward_data_f32(const Conv2dShape& s,
                                 const float* grad_y,
                                 const float* w,
                                 float* grad_x);
void depthwise_backward_weights_f32(const Conv2dShape& s,
                                    const float* x,
                                    const float* grad_y,
                                    float* grad_w);

}  // namespace quantrain::kernels
