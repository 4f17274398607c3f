#pragma once

#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]: axis k of y is axis perm[k] of x. Negative axes
/// count from the end; an empty perm reverses the order of axes, which transposes a matrix.
/// Shapes: x [d_0, d_1, ...] -> y [d_perm[0], d_perm[1], ...].
/// Gradient: grad_y, transposed back.
/// Throws: ShapeError if perm does not name each axis of x once.
/// Source: ONNX Transpose.
Tensor transpose(const Tensor& x, const std::vector<int>& perm = {});

}  // namespace quantrain
