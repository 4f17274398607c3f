#pragma once

#include <cstdint>

#include "framework/kernels/conv_shape.hpp"

// Where sums are short, as over the taps of few channels, zeros around the image cost less than
// pixels that see other taps than their neighbours.
namespace quantrain::kernels {

/// Whether a convolution pads. With a stride each pixel that is copied serves too few sums.
bool is_padded(const Conv2dShape& s);

/// The same convolution of images that have their padding around them.
Conv2dShape with_padding(Conv2dShape s);

/// Lines [begin, end) of the images of with_padding(s), those of all images one behind the other,
/// made of x [N, H, W, C].
void pad_lines(const Conv2dShape& s, const float* x, int64_t begin, int64_t end, float* to);

}  // namespace quantrain::kernels
