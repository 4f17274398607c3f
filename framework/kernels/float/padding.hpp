#pragma once

#include <cstdint>

#include "framework/kernels/conv_shape.hpp"

// If sums are short, for example over the taps of few channels, zeros around the image cost less
// than separate tiles for the border pixels, whose windows cover fewer taps.
namespace quantrain::kernels {

/// Whether a convolution copies its input with a border. A convolution with a stride does not,
/// because each copied pixel would serve too few sums.
bool is_padded(const Conv2dShape& s);

/// The same convolution on images that include their padding.
Conv2dShape with_padding(Conv2dShape s);

/// Writes lines [begin, end) of the padded images (with_padding(s)) to `to`, from x [N, H, W, C].
/// Lines are counted over all images.
void pad_lines(const Conv2dShape& s, const float* x, int64_t begin, int64_t end, float* to);

}  // namespace quantrain::kernels
