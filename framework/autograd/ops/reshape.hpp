#pragma once

#include <initializer_list>
#include <span>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y holds x's elements in the same row-major order.
/// Shapes: any  ->  y [extents]. One extent may be -1; it is computed from the number of elements.
/// Waiting results, and codes with per-tensor parameters, keep their kind; per-channel codes become
/// floats.
/// Gradient: grad_y in x's shape.
/// Throws: ShapeError if the number of elements does not fit, an extent is below -1, there are two
/// extents of -1, or there is one of -1 and one of 0.
/// Source: ONNX Reshape, without its special meaning of 0.
Tensor reshape(const Tensor& x, std::span<const int64_t> extents);
inline Tensor reshape(const Tensor& x, std::initializer_list<int64_t> extents) {
  return reshape(x, std::span(extents.begin(), extents.size()));
}
inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return reshape(x, std::span(shape.begin(), shape.end()));
}

}  // namespace quantrain
