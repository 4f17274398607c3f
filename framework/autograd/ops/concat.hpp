#pragma once

#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = the operands, concatenated along an axis; a negative axis counts from the end.
/// Shapes: x[i] with equal extents except along the axis  ->  y with the sum of the extents along
/// the axis. If all operands hold activation codes, an integer operation rescales each operand to
/// the parameters of y; the FakeQuantize that follows sets these parameters.
/// docs/quantization.md (11)
/// Gradient: each operand gets its part of grad_y.
/// Throws: ShapeError if there is no operand, the axis does not exist, other extents differ or the
/// sum of the extents overflows.
/// Source: ONNX Concat.
Tensor concat(const std::vector<Tensor>& x, int axis);

}  // namespace quantrain
