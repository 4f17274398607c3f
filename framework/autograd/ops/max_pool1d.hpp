#pragma once

#include "framework/autograd/ops/pool1d.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[n, i, c] = the largest x[n, l, c] of a window; padding never wins.
/// Shapes: x [N, L, C]  ->  y [N, OL, C], OL = (L + 2 padding - kernel) / stride + 1.
/// Codes stay codes with the same parameters.   docs/quantization.md (10)
/// Gradient: grad_y to the element that won, the first among equals.
/// Throws: ShapeError if x has not three axes, the kernel exceeds the padded signal, padding is not
/// below the kernel, a number is senseless, or a window of more than 65,536 elements is to have a
/// gradient.
/// Source: ONNX MaxPool of one axis, channels last.
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options);

/// The largest of each channel over the whole signal.
/// Shapes: x [N, L, C]  ->  y [N, 1, C].
/// Throws: ShapeError if x has not three axes, or a signal has no elements; as above.
/// Source: ONNX GlobalMaxPool of one axis, channels last.
Tensor global_max_pool1d(const Tensor& x);

}  // namespace quantrain
