#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = 1 / (1 + exp(-x)).
/// Shapes: x [...]  ->  y like x. Codes as elementwise().
/// Gradient: grad_x = grad_y * y * (1 - y).
/// Source: ONNX Sigmoid.
Tensor sigmoid(const Tensor& x);

}  // namespace quantrain
