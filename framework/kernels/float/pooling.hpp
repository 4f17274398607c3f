#pragma once

#include <cstdint>

#include "framework/kernels/conv_shape.hpp"

// Pooling in float32, split into blocks of images over threads.
namespace quantrain::kernels {

/// The largest element of each window, and its position in the window, counted row by row. The
/// first of equal elements wins; NaN wins over everything. position may be null. If it is not,
/// windows have at most kLargestPoolWindow elements.
void max_pool2d_f32(const Conv2dShape& shape, const float* x, float* y, uint16_t* position);
/// Overwrites grad_x: the element at `position` of each window gets the window's grad_y; where
/// windows overlap, an element gets their sum.
void max_pool2d_backward_f32(const Conv2dShape& shape,
                             const float* grad_y,
                             const uint16_t* position,
                             float* grad_x);
/// Sum over the elements of each window inside the image, divided by their number, or by `divisor`
/// if it is not 0.
void avg_pool2d_f32(const Conv2dShape& shape, int64_t divisor, const float* x, float* y);
void avg_pool2d_backward_f32(const Conv2dShape& shape,
                             int64_t divisor,
                             const float* grad_y,
                             float* grad_x);

}  // namespace quantrain::kernels
