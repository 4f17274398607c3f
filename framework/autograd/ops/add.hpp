#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = a + b, elementwise, broadcasting.
/// Shapes: any two that broadcast  ->  y of the broadcast shape.
/// If a and b are activation codes of the same shape, y is an integer sum, computed when the
/// parameters of y are known.   docs/quantization.md (11)
/// If one operand is activation codes and the other is a constant (one number, or one for each
/// channel), y is an integer lookup, made when the parameters of y are known.
/// docs/quantization.md (24)
/// Gradient: grad_y to both, summed over the axes along which an operand was repeated.
/// Throws: ShapeError if the shapes do not broadcast.
/// Source: ONNX Add.
Tensor add(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }

}  // namespace quantrain
