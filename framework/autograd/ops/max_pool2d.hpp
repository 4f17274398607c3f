#pragma once

#include "framework/autograd/ops/pool2d.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[n, i, j, c] = the largest x[n, h, w, c] of a window; padding does not count.
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C], OH = (H + 2 padding.h - kernel.h) / stride.h + 1,
/// OW likewise; with ceil_mode, see pool_end(). Codes stay codes with the same parameters.
/// docs/quantization.md (10)
/// Gradient: the largest element gets grad_y; among equal ones, the first.
/// Throws: ShapeError if x does not have four axes or has 2^31 elements or more, an image has no
/// pixels, the kernel exceeds the padded image, padding is not below the kernel, an option is out
/// of range, count_include_pad is set, or a window of more than 65,536 elements needs a gradient.
/// Source: ONNX MaxPool, channels last.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);

/// The largest element of each channel over the whole image.
/// Shapes: x [N, H, W, C]  ->  y [N, 1, 1, C]. Codes and gradient as above.
/// Throws: ShapeError if x does not have four axes, or an image has no pixels; otherwise like
/// max_pool2d().
/// Source: ONNX GlobalMaxPool.
Tensor global_max_pool2d(const Tensor& x);

}  // namespace quantrain
