#pragma once

#include "framework/autograd/ops/pool2d.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[n, i, j, c] = the mean of x[n, h, w, c] over the part of a window that lies inside the image.
/// With count_include_pad, padding counts as zeros.
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C], OH = (H + 2 padding.h - kernel.h) / stride.h + 1,
/// OW likewise; with ceil_mode, see pool_end(). If x holds activation codes, y is the exact mean of
/// codes; the FakeQuantize that follows sets the parameters of y.   docs/quantization.md (10)
/// Gradient: the elements of a window that lie inside the image share grad_y equally.
/// Throws: ShapeError if x does not have four axes or has 2^31 elements or more, an image has no
/// pixels, the kernel exceeds the padded image, padding is not below the kernel, or an option is
/// out of range; QuantError if a sum of codes could exceed 32 bits.
/// Source: ONNX AveragePool, channels last; options as in PyTorch's AvgPool2d, whose default is
/// count_include_pad=True.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

/// The mean of each channel: avg_pool2d with a kernel that covers the whole image.
/// Shapes: x [N, H, W, C]  ->  y [N, 1, 1, C].
/// Throws: ShapeError if x does not have four axes, or an image has no pixels; otherwise like
/// avg_pool2d.
/// Source: ONNX GlobalAveragePool, channels last.
Tensor global_avg_pool2d(const Tensor& x);

}  // namespace quantrain
