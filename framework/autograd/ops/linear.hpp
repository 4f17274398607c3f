#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = x * weight^T + bias.
/// Shapes: x [..., in], weight [out, in], bias [out] or undefined  ->  y [..., out].
/// If x holds activation codes and weight holds symmetric weight codes, the integers are
/// multiplied: y holds exact ProductAccumulators, which include the quantized bias.
/// docs/quantization.md (6), (7)
/// Gradient: grad_x = grad_y * weight, grad_weight = grad_y^T * x, grad_bias = sum of grad_y; codes
/// count as the real values they represent.
/// Throws: ShapeError if the shapes do not fit; QuantError if an integer sum or bias could
/// overflow.
/// Source: ONNX Gemm with transB.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

}  // namespace quantrain
