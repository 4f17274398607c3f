#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[..., c] = x[..., c] - log(sum over k of exp(x[..., k])), along the last axis.
/// Shapes: x [..., C] -> y like x. The largest element is subtracted first, so that nothing
/// overflows.
/// Gradient: grad_x = grad_y - exp(y) * sum over the last axis of grad_y.
/// Throws: ShapeError if x is a scalar.
/// Source: ONNX LogSoftmax, axis -1.
Tensor log_softmax(const Tensor& x);

}  // namespace quantrain
