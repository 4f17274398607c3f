#pragma once

#include <string_view>

#include "framework/autograd/tensor.hpp"

// Shared by elementwise operations on operands of different shapes. Shapes are aligned at their
// last axes; an axis of extent 1, or an absent axis, is repeated.
// Source: NumPy; ONNX, "multidirectional broadcasting"
namespace quantrain {

/// Shape of an elementwise result.
/// Throws: ShapeError naming the operation and both shapes if they do not fit.
Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b);

/// The values of x, repeated to fill `shape`; x itself if the shapes are equal. x's shape must
/// broadcast to `shape`.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// The gradient of broadcast_to for an operand of this shape: grad_y summed over the axes along
/// which the operand was repeated, or grad_y itself if the shapes are equal. The result has the
/// same bits for any number of threads.
Tensor reduce_to(const Tensor& grad_y, const Shape& shape);

/// y[i] = op(a[i], b[i]) for n elements; for example kernels::add_f32.
using BinaryKernel = void (*)(int64_t n, const float* a, const float* b, float* y);

/// kernel(a, b) in floats, with the broadcast shape; records nothing.
/// Throws: ShapeError naming the operation and both shapes if they do not fit.
Tensor broadcast_binary(std::string_view operation,
                        BinaryKernel kernel,
                        const Tensor& a,
                        const Tensor& b);

}  // namespace quantrain
