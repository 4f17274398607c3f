#pragma once

#include "framework/autograd/ops/pool1d.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[n, i, c] = the largest x[n, l, c] of a window; padding does not count.
/// Shapes: x [N, L, C]  ->  y [N, OL, C], OL = (L + 2 padding - kernel) / stride + 1; with
/// ceil_mode, see pool_end().
/// Codes stay codes with the same parameters.   docs/quantization.md (10)
/// Gradient: the largest element gets grad_y; among equal ones, the first.
/// Throws: ShapeError if x does not have three axes or has 2^31 elements or more, a signal has no
/// elements, the kernel exceeds the padded signal, padding is not below the kernel, an option is
/// out of range, count_include_pad is set, or a window of more than 65,536 elements needs a
/// gradient.
/// Source: ONNX MaxPool over one axis, channels last.
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options);

/// The largest element of each channel over the whole signal.
/// Shapes: x [N, L, C]  ->  y [N, 1, C].
/// Throws: ShapeError if x does not have three axes, or a signal has no elements; otherwise like
/// max_pool1d().
/// Source: ONNX GlobalMaxPool over one axis, channels last.
Tensor global_max_pool1d(const Tensor& x);

}  // namespace quantrain
