#pragma once

#include <memory>

#include "framework/autograd/ops/elementwise.hpp"

// Functions of one element, defined in functions.cpp. A deployed network runs each of them as a
// lookup table of codes.   docs/quantization.md (18)
namespace quantrain {

// elementwise() computes each of these functions; y has x's shape. On floats, sigmoid, tanh and exp
// compute in float32. The gradient is grad_x = grad_y * f'(x). The comment of each function states
// f', also at kinks.

/// y = 1 / (1 + exp(-x)).   f' = y * (1 - y).   ONNX Sigmoid.
Tensor sigmoid(const Tensor& x);
/// y = tanh(x).   f' = 1 - y * y.   ONNX Tanh.
Tensor tanh(const Tensor& x);
/// y = min(max(x + 3, 0), 6) / 6.   f' = 1 / 6 in (-3, 3), else 0.
/// Howard et al. 2019, section 5.2; ONNX HardSigmoid, alpha 1 / 6, beta 0.5.
Tensor hard_sigmoid(const Tensor& x);
/// y = x * min(max(x + 3, 0), 6) / 6.   f' = 0 below -3, 1 above 3, else (2 x + 3) / 6.
/// Howard et al. 2019, section 5.2; ONNX HardSwish.
Tensor hard_swish(const Tensor& x);
/// y = x * sigmoid(x).   f' = s * (1 + x * (1 - s)), s = sigmoid(x).
/// Elfwing et al. 2018; ONNX Swish, alpha 1.
Tensor silu(const Tensor& x);
/// y = x * P, P = (1 + erf(x / sqrt(2))) / 2.   f' = P + x * exp(-x * x / 2) / sqrt(2 pi).
/// Hendrycks and Gimpel 2016; ONNX Gelu, without the approximation.
Tensor gelu(const Tensor& x);
/// y = x where x > 0, else slope * x.   f' = 1 where x > 0, else slope.
/// Throws: DataError if slope is not finite.
/// Maas et al. 2013; ONNX LeakyRelu.
Tensor leaky_relu(const Tensor& x, float slope = 0.01f);
/// y = x where x > 0, else alpha * (exp(x) - 1).   f' = 1 where x > 0, else alpha * exp(x).
/// Throws: DataError if alpha is not finite.
/// Clevert et al. 2016; ONNX Elu.
Tensor elu(const Tensor& x, float alpha = 1.0f);
/// y = exp(x).   f' = y.   ONNX Exp.
/// Quantizing y throws QuantError if the exponential of a code exceeds double's range.
Tensor exp(const Tensor& x);
/// y = x * x.   f' = 2 * x.
Tensor square(const Tensor& x);
/// y = |x|.   f' = sign of x, 0 at 0.   ONNX Abs.
Tensor abs(const Tensor& x);
/// y = min(max(x, low), high).   f' = 1 in [low, high], else 0.
/// Throws: DataError unless low <= high, low < infinity and high > -infinity.
/// ONNX Clip; PyTorch's hardtanh is clamp(x, -1, 1) except for the gradient at the bounds.
Tensor clamp(const Tensor& x, float low, float high);

/// The same functions as objects, for elementwise() and the layer Elementwise.
namespace functions {
using Function = std::shared_ptr<const ElementwiseFunction>;

Function sigmoid();
Function tanh();
Function hard_sigmoid();
Function hard_swish();
Function silu();
Function gelu();
Function leaky_relu(float slope);
Function elu(float alpha);
Function exp();
Function square();
Function abs();
Function clamp(float low, float high);
}  // namespace functions

}  // namespace quantrain
