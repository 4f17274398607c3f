#pragma once

#include <cstdint>

#include "framework/kernels/conv_shape.hpp"

// If sums are short, as over the taps of few channels, a border of zeros costs less than pixels
// whose windows cover fewer taps than their neighbours'.
namespace quantrain::kernels {

/// Whether a convolution pads. With a stride, each copied pixel serves too few sums.
bool is_padded(const Conv2dShape& s);

/// The same convolution, of images that include their padding.
Conv2dShape with_padding(Conv2dShape s);

/// Writes lines [begin, end) of the images of with_padding(s), counted over all images, from x [N,
/// H, W, C].
void pad_lines(const Conv2dShape& s, const float* x, int64_t begin, int64_t end, float* to);

}  // namespace quantrain::kernels
