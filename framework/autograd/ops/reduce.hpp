#pragma once

#include <cstdint>

#include "framework/autograd/node.hpp"

// Shared by sum and mean.
namespace quantrain::reduce {

/// A tensor as [outer, count, inner]. count is the extent of the axis that is summed over, or the
/// number of all elements if no axis is given.
struct Extents {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;
};
Extents extents(const Shape& shape);
/// Throws: ShapeError if there is no such axis.
Extents extents(const Shape& shape, int axis);

/// Shape of the result: without the axis, or with extent 1 if keepdim.
Shape reduced_shape(const Shape& shape, int axis, bool keepdim);
/// y[o, i] = factor * sum over k of x[o, k, i].
void sum(const Extents& e, float factor, const float* x, float* y);
/// y[o, k, i] = factor * x[o, i].
void expand(const Extents& e, float factor, const float* x, float* y);

/// ONNX's attributes of a reduction: axes, keepdims.
Attributes attributes(const Shape& shape);
Attributes attributes(const Shape& shape, int axis, bool keepdim);

}  // namespace quantrain::reduce
