#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = x with all axes except the first merged into one.
/// Shapes: x [N, ...]  ->  y [N, rest]. Waiting results, and codes with per-tensor parameters, keep
/// their kind.
/// Gradient: grad_y in x's shape.
/// Throws: ShapeError if x is a scalar.
/// Source: ONNX Flatten with axis 1.
Tensor flatten(const Tensor& x);

}  // namespace quantrain
