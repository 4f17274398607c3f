#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[..., m, n] = sum over k of a[..., m, k] * b[..., k, n].
/// Shapes: a [..., M, K], b [K, N]  ->  y [..., M, N]; or both with the same leading extents.
/// Gradient: grad_a = grad_y * b^T, grad_b = a^T * grad_y, summed over leading axes that b does not
/// have.
/// Throws: ShapeError if an operand's rank is below 2, or inner or leading extents differ.
/// Source: ONNX MatMul. Of its broadcasting, only b [K, N] is supported.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace quantrain
