#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = a / b, elementwise, broadcasting; by IEEE 754: x / 0 is infinite, 0 / 0 is NaN.
/// Shapes: any two that broadcast -> y of the broadcast shape.
/// Gradient: grad_a = grad_y / b, grad_b = -(grad_y / b) * y, summed over the axes along which an
/// operand was repeated.
/// Throws: ShapeError if the shapes do not broadcast.
/// Source: ONNX Div.
Tensor div(const Tensor& a, const Tensor& b);

inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }

}  // namespace quantrain
