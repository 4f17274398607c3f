#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = a * b, elementwise, broadcasting.
/// Shapes: any two that broadcast -> y of the broadcast shape.
/// If one operand holds activation codes and the other is a constant (one number, or one for each
/// channel), y is an integer lookup.   docs/quantization.md (24)
/// If both hold activation codes, of the same shape or of shapes [N, ..., C] and [N, 1, ..., 1, C],
/// y is an exact integer product. In both cases the FakeQuantize that follows sets the parameters
/// of y.   docs/quantization.md (25)
/// Gradient: grad_a = grad_y * b, grad_b = grad_y * a, summed over the axes along which an operand
/// was repeated.
/// Throws: ShapeError if the shapes do not broadcast.
/// Source: ONNX Mul.
Tensor mul(const Tensor& a, const Tensor& b);

/// Whether b has one factor for each channel of each sample of a: the shapes are [N, ..., C] and
/// [N, 1, ..., 1, C].
bool are_channel_factors(const Shape& a, const Shape& b);

inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }

}  // namespace quantrain
