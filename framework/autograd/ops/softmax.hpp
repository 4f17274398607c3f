#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[..., c] = exp(x[..., c]) / sum over k of exp(x[..., k]), along the last axis. The largest
/// element is subtracted first, so that nothing overflows. If x holds activation codes and has an
/// axis besides the batch, y is computed in integers.   docs/quantization.md (26)
/// Shapes: x [..., C] -> y like x.
/// Gradient: grad_x = y * (grad_y - s), where s is the sum of grad_y * y over the last axis.
/// Throws: ShapeError if x is a scalar.
/// Source: ONNX Softmax, axis -1.
Tensor softmax(const Tensor& x);

}  // namespace quantrain
