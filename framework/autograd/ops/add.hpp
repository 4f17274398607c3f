#pragma once

#include <utility>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = a + b, elementwise, broadcasting.
/// Shapes: any two that broadcast  ->  y of the broadcast shape.
/// If a and b hold activation codes of the same shape, y is an integer sum.
/// docs/quantization.md (11)
/// If one operand holds activation codes and the other is a constant (one number, or one for each
/// channel), y is an integer lookup.   docs/quantization.md (24)
/// In both cases the FakeQuantize that follows sets the parameters of y.
/// If an operand holds floats and is the only handle, y takes their memory: add(std::move(a), b).
/// Gradient: grad_y to each operand, summed over the axes along which that operand was repeated.
/// Throws: ShapeError if the shapes do not broadcast.
/// Source: ONNX Add.
Tensor add(Tensor a, Tensor b);

/// y = x[0] + x[1] + ..., elementwise, broadcasting. Floats are added from left to right. A single
/// operand is returned unchanged.
/// Shapes: any that broadcast  ->  y of the broadcast shape.
/// If all operands hold activation codes of one shape, y is one integer sum, which is rounded once.
/// In contrast, a chain of two-operand additions rounds each partial sum to a range of its own.
/// docs/quantization.md (11)
/// Gradient: grad_y to each operand, summed over the axes along which that operand was repeated.
/// Throws: ShapeError if there is no operand, or the shapes do not broadcast.
/// Source: ONNX Sum.
Tensor add(std::vector<Tensor> x);

inline Tensor operator+(Tensor a, Tensor b) { return add(std::move(a), std::move(b)); }

}  // namespace quantrain
