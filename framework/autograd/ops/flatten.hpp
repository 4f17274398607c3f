#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = x with all axes but the first made one.
/// Shapes: x [N, ...]  ->  y [N, rest]. Codes with per-tensor parameters and accumulators stay what
/// they are.
/// Gradient: grad_y in x's shape.
/// Throws: ShapeError if x is a scalar.
/// Source: ONNX Flatten with axis 1.
Tensor flatten(const Tensor& x);

}  // namespace quantrain
