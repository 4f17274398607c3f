#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = a - b, elementwise, broadcasting.
/// Shapes: any two that broadcast -> y of the broadcast shape.
/// Gradient: grad_a = grad_y, grad_b = -grad_y, summed over the axes along which an operand was
/// repeated.
/// Throws: ShapeError if the shapes do not broadcast.
/// Source: ONNX Sub.
Tensor sub(const Tensor& a, const Tensor& b);

inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }

}  // namespace quantrain
