#pragma once

#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = the operands one after the other along an axis; a negative axis counts from the end.
/// Shapes: x[i] with equal extents except along the axis  ->  y with the sum of the extents along
/// it. If all operands hold activation codes, y is an integer operation that rescales each operand
/// to the parameters of y, when they are known.   docs/quantization.md (11)
/// Gradient: to each operand its part of grad_y.
/// Throws: ShapeError if there is no operand, the axis does not exist or other extents differ.
/// Source: ONNX Concat.
Tensor concat(const std::vector<Tensor>& x, int axis);

}  // namespace quantrain
