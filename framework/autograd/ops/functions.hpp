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
/// y = min(max(alpha * x + beta, 0), 1).   f' = alpha where alpha * x + beta lies in (0, 1), else
/// 0.
/// Throws: DataError if alpha or beta is not finite.
/// ONNX HardSigmoid, whose alpha is 0.2 and beta 0.5 unless it says otherwise.
Tensor hard_sigmoid(const Tensor& x, float alpha, float beta);
/// y = x * min(max(x + 3, 0), 6) / 6.   f' = 0 below -3, 1 above 3, else (2 x + 3) / 6.
/// Howard et al. 2019, section 5.2; ONNX HardSwish.
Tensor hard_swish(const Tensor& x);
/// y = x * sigmoid(x).   f' = s * (1 + x * (1 - s)), s = sigmoid(x).
/// Elfwing et al. 2018; ONNX Swish, alpha 1.
Tensor silu(const Tensor& x);
/// y = x * P, P = (1 + erf(x / sqrt(2))) / 2.   f' = P + x * exp(-x * x / 2) / sqrt(2 pi).
/// Hendrycks and Gimpel 2016; ONNX Gelu, without the approximation.
Tensor gelu(const Tensor& x);
/// y = x * (1 + tanh(u)) / 2, u = sqrt(2 / pi) * (x + 0.044715 * x^3).
/// f' = (1 + t) / 2 + x * (1 - t^2) * u' / 2, t = tanh(u).
/// Hendrycks and Gimpel 2016; ONNX Gelu, approximate "tanh".
Tensor gelu_tanh(const Tensor& x);
/// y = x * tanh(softplus(x)).   f' = t + x * (1 - t^2) * sigmoid(x), t = tanh(softplus(x)).
/// Misra 2019; ONNX Mish.
Tensor mish(const Tensor& x);
/// y = ln(1 + exp(x)).   f' = sigmoid(x).   ONNX Softplus.
Tensor softplus(const Tensor& x);
/// y = 2 / sqrt(pi) * integral of exp(-t * t) from 0 to x.   f' = 2 / sqrt(pi) * exp(-x * x).
/// ONNX Erf.
Tensor erf(const Tensor& x);
/// y = x where x > 0, else slope * x.   f' = 1 where x > 0, else slope.
/// Throws: DataError if slope is not finite.
/// Maas et al. 2013; ONNX LeakyRelu.
Tensor leaky_relu(const Tensor& x, float slope = 0.01f);
/// y = x where x > 0, else alpha * (exp(x) - 1).   f' = 1 where x > 0, else alpha * exp(x).
/// Throws: DataError if alpha is not finite.
/// Clevert et al. 2016; ONNX Elu.
Tensor elu(const Tensor& x, float alpha = 1.0f);
/// y = s * x where x > 0, else s * a * (exp(x) - 1); s = 1.0507..., a = 1.6732..., so that
/// normalized values stay normalized.   f' = s where x > 0, else s * a * exp(x).
/// Klambauer et al. 2017; ONNX Selu.
Tensor selu(const Tensor& x);
/// y = exp(x).   f' = y.   ONNX Exp.
/// Quantizing y throws QuantError if the exponential of a code exceeds double's range.
Tensor exp(const Tensor& x);
/// y = x * x.   f' = 2 * x.
Tensor square(const Tensor& x);
/// y = x^exponent. If the exponent is not an integer, x below 0 counts as 0, so that every code has
/// a value.   f' = exponent * x^(exponent - 1), 0 where y does not depend on x or f' is infinite.
/// Throws: DataError unless the exponent is finite and not negative.
/// ONNX Pow with a constant exponent.
Tensor power(const Tensor& x, float exponent);
/// y = sqrt(x); x below 0 counts as 0.   f' = 1 / (2 y), 0 where x <= 0.   ONNX Sqrt.
Tensor sqrt(const Tensor& x);
/// y = ln(x); x below 2^-126, the least normal float, counts as that.   f' = 1 / x, 0 below.
/// ONNX Log.
Tensor log(const Tensor& x);
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
Function hard_sigmoid(float alpha, float beta);
Function hard_swish();
Function silu();
Function gelu();
Function gelu_tanh();
Function mish();
Function softplus();
Function erf();
Function leaky_relu(float slope);
Function elu(float alpha);
Function selu();
Function exp();
Function square();
Function power(float exponent);
Function sqrt();
Function log();
Function abs();
Function clamp(float low, float high);
}  // namespace functions

}  // namespace quantrain
