#pragma once

#include <vector>

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

/// y = x[0] + x[1] + ..., elementwise, broadcasting. In floats, adds from left to right. One
/// operand is returned as it is.
/// Shapes: any that broadcast  ->  y of the broadcast shape.
/// If all operands are activation codes of one shape, y is one integer sum, which is rounded once.
/// A chain of additions of two operands gives each partial sum a range and rounds it.
/// docs/quantization.md (11)
/// Gradient: grad_y to each operand, summed over the axes along which it was repeated.
/// Throws: ShapeError if there is no operand, or the shapes do not broadcast.
/// Source: ONNX Sum.
Tensor add(const std::vector<Tensor>& x);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }

}  // namespace quantrain
