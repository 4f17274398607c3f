#pragma once

#include <initializer_list>
#include <span>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y holds x's elements in the same row-major order.
/// Shapes: any  ->  y [extents]; one extent may be -1: what is left of the elements. Codes with
/// per-tensor parameters and accumulators stay what they are; per-channel codes become floats.
/// Gradient: grad_y in x's shape.
/// Throws: ShapeError if the elements do not fit, or there are two extents of -1.
/// Source: ONNX Reshape without its 0.
Tensor reshape(const Tensor& x, std::span<const int64_t> extents);
inline Tensor reshape(const Tensor& x, std::initializer_list<int64_t> extents) {
  return reshape(x, std::span(extents.begin(), extents.size()));
}
inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return reshape(x, std::span(shape.begin(), shape.end()));
}

}  // namespace quantrain
