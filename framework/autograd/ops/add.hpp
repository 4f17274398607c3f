#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = a + b, elementwise, broadcasting.
/// Shapes: any two that broadcast  ->  y of the broadcast shape.
/// Of activation codes of one shape: an integer sum that waits for its parameters.
/// docs/quantization.md (11)
/// Of activation codes and a constant, one number or one for each channel: a lookup that waits for
/// its parameters.   docs/quantization.md (24)
/// Gradient: grad_y to both, summed over the axes along which an operand was repeated.
/// Throws: ShapeError if the shapes do not broadcast.
/// Source: ONNX Add.
Tensor add(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }

}  // namespace quantrain
