#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = sum of all elements of x.
/// Shapes: x [...] -> y [].
/// Gradient: grad_x = grad_y everywhere.
/// Source: ONNX ReduceSum.
Tensor sum(const Tensor& x);

/// y[..., ...] = sum over k of x[..., k, ...], k along `axis`; negative axes count from the end.
/// Shapes: x [..., K, ...] -> y [..., ...], or [..., 1, ...] with keepdim. A sum of no elements is
/// 0.
/// Gradient: grad_x[..., k, ...] = grad_y[..., ...].
/// Throws: ShapeError if x has no such axis.
/// Source: ONNX ReduceSum.
Tensor sum(const Tensor& x, int axis, bool keepdim = false);

}  // namespace quantrain
