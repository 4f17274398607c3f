#pragma once

#include <string_view>

#include "framework/autograd/tensor.hpp"

// What elementwise operations on operands of different shapes share. Shapes are aligned at their
// last axes; an extent of 1, or an absent axis, is repeated.   NumPy, ONNX "multidirectional
// broadcasting"
namespace quantrain {

/// Shape of an elementwise result.
/// Throws: ShapeError naming the operation and both shapes if they do not fit.
Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b);

/// Values of x, repeated up to `shape`, which x's shape broadcasts to; x itself where the shapes
/// are equal.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// The gradient of broadcast_to: sums grad_y over every axis that `shape` repeats; grad_y itself
/// where the shapes are equal. Bits do not depend on the number of threads.
Tensor reduce_to(const Tensor& grad_y, const Shape& shape);

/// y[i] = op(a[i], b[i]) over n elements: kernels::add_f32 and its like.
using BinaryKernel = void (*)(int64_t n, const float* a, const float* b, float* y);

/// Floats of kernel(a, b) at the broadcast shape; records nothing.
/// Throws: ShapeError naming the operation and both shapes if they do not fit.
Tensor broadcast_binary(std::string_view operation,
                        BinaryKernel kernel,
                        const Tensor& a,
                        const Tensor& b);

}  // namespace quantrain
