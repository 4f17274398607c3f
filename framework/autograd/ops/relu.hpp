#pragma once

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = max(x, 0).   docs/quantization.md (9)
/// Shapes: any; y like x. Codes stay codes, clamped at the zero point. A waiting result
/// still waits, and the activation is applied when it is requantized. If x holds floats and is
/// the only handle, y takes their memory: write relu(std::move(x)).
/// Gradient: grad_y where x > 0, else 0; one bit per element is saved.
/// Source: ONNX Relu.
Tensor relu(Tensor x);

/// y = min(max(x, 0), 6). Otherwise like relu; the gradient is grad_y where 0 < x < 6, else 0.
/// Source: Krizhevsky 2010, section 2.
Tensor relu6(Tensor x);

/// relu, relu6, or x itself for Activation::kNone.
Tensor activate(Tensor x, Activation activation);

/// The same values and gradient as activate(). But if x holds codes, the result waits for
/// parameters of its own, as that of an elementwise function does.   docs/quantization.md (18)
Tensor activate_with_own_params(Tensor x, Activation activation);

}  // namespace quantrain
