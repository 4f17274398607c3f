#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[..., i, ...] = x[..., indices[i], ...] along `axis`: chooses, repeats or reorders, such as the
/// channels of an image. Negative indices, and a negative axis, count from the end.
/// Shapes: x [..., D, ...]  ->  y [..., number of indices, ...].
/// Codes with per-tensor parameters stay codes with the same parameters, unless `axis` is the batch
/// axis.   docs/quantization.md (23)
/// Gradient: the sum of grad_y at all places that took the element.
/// Throws: ShapeError if x has no such axis, or an index lies outside of it.
/// Source: ONNX Gather with constant indices.
Tensor take(const Tensor& x, int axis, const std::vector<int64_t>& indices);

}  // namespace quantrain
