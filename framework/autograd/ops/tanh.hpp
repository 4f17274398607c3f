#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = tanh(x).
/// Shapes: x [...]  ->  y like x. Codes as elementwise().
/// Gradient: grad_x = grad_y * (1 - y * y).
/// Source: ONNX Tanh.
Tensor tanh(const Tensor& x);

}  // namespace quantrain
