#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = sum of all elements of x / their number.
/// Shapes: x [...] -> y [].
/// Gradient: grad_x = grad_y / number of elements, everywhere.
/// Throws: ShapeError if x has no elements.
/// Source: ONNX ReduceMean.
Tensor mean(const Tensor& x);

/// y[..., ...] = (sum over k of x[..., k, ...]) / K, k along `axis`; negative axes count from the
/// end.
/// Shapes: x [..., K, ...] -> y [..., ...], or [..., 1, ...] with keepdim.
/// Gradient: grad_x[..., k, ...] = grad_y[..., ...] / K.
/// Throws: ShapeError if x has no such axis, or K is 0.
/// Source: ONNX ReduceMean.
Tensor mean(const Tensor& x, int axis, bool keepdim = false);

}  // namespace quantrain
