#pragma once

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = max(x, 0).   docs/quantization.md (9)
/// Shapes: any; y like x. Codes stay codes, clamped at the zero point. Accumulators stay
/// accumulators, and the activation is applied when they are requantized.
/// Gradient: grad_y where x > 0, else 0; one bit per element is saved.
/// Source: ONNX Relu.
Tensor relu(const Tensor& x);

/// y = min(max(x, 0), 6). Otherwise like relu; the gradient is grad_y where 0 < x < 6, else 0.
/// Source: Krizhevsky 2010, section 2.
Tensor relu6(const Tensor& x);

/// relu or relu6 for a caller that does not read x afterwards. If no other handle refers to x, the
/// result takes x's floats, and the activation is applied when they are read. If the scale and
/// shift of a batch norm are still pending, both are done in one pass.
Tensor activate_last_use(const Tensor& x, Activation activation);

}  // namespace quantrain
