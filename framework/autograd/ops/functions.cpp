#include "framework/autograd/ops/functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace functions {
namespace {

constexpr double kHalfRoot = 0.70710678118654752440;        // sqrt(1 / 2)
constexpr double kInverseRootTau = 0.39894228040143267794;  // 1 / sqrt(2 pi)

double logistic(double v) { return 1.0 / (1.0 + std::exp(-v)); }
/// Distribution function of the standard normal distribution. erfc avoids cancellation for negative
/// v.
double cumulative(double v) { return 0.5 * std::erfc(-v * kHalfRoot); }
/// Density of the standard normal distribution.
double density(double v) { return kInverseRootTau * std::exp(-0.5 * v * v); }

/// ln(1 + exp(v)) without overflow.
double soft_plus(double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::abs(v))); }

Function shared(ElementwiseFunction function) {
  return std::make_shared<const ElementwiseFunction>(std::move(function));
}

void check_finite_option(const char* where, const char* option, float value) {
  if (!std::isfinite(value))
    throw DataError(where, option, " is ", value, ", expected a finite number");
}

}  // namespace

Function sigmoid() {
  static const Function function = shared({.type = "sigmoid",
                                           .f = logistic,
                                           .derivative =
                                               [](double v) {
                                                 const double y = logistic(v);
                                                 return y * (1.0 - y);
                                               },
                                           .layer = "Sigmoid",
                                           .forward_f32 = kernels::sigmoid_f32,
                                           .backward_f32 = kernels::sigmoid_backward_f32});
  return function;
}

Function tanh() {
  static const Function function = shared({.type = "tanh",
                                           .f = [](double v) { return std::tanh(v); },
                                           .derivative =
                                               [](double v) {
                                                 const double y = std::tanh(v);
                                                 return 1.0 - y * y;
                                               },
                                           .layer = "Tanh",
                                           .forward_f32 = kernels::tanh_f32,
                                           .backward_f32 = kernels::tanh_backward_f32});
  return function;
}

Function hard_sigmoid() {
  static const Function function =
      shared({.type = "hard_sigmoid",
              .f = [](double v) { return std::clamp(v + 3.0, 0.0, 6.0) / 6.0; },
              .derivative = [](double v) { return v > -3.0 && v < 3.0 ? 1.0 / 6.0 : 0.0; },
              .layer = "HardSigmoid",
              .attributes = {{"alpha", 1.0 / 6.0}, {"beta", 0.5}}});
  return function;
}

Function hard_sigmoid(float alpha, float beta) {
  check_finite_option("hard_sigmoid", "alpha", alpha);
  check_finite_option("hard_sigmoid", "beta", beta);
  if (alpha == 1.0f / 6.0f && beta == 0.5f) return hard_sigmoid();
  const double a = alpha;
  const double b = beta;
  return shared({.type = "hard_sigmoid",
                 .f = [=](double v) { return std::clamp(a * v + b, 0.0, 1.0); },
                 .derivative =
                     [=](double v) {
                       const double y = a * v + b;
                       return y > 0.0 && y < 1.0 ? a : 0.0;
                     },
                 .layer = "HardSigmoid",
                 .attributes = {{"alpha", a}, {"beta", b}}});
}

Function hard_swish() {
  static const Function function =
      shared({.type = "hard_swish",
              .f = [](double v) { return v * std::clamp(v + 3.0, 0.0, 6.0) / 6.0; },
              .derivative =
                  [](double v) { return v < -3.0  ? 0.0
                                        : v > 3.0 ? 1.0
                                                  : (2.0 * v + 3.0) / 6.0; },
              .layer = "HardSwish"});
  return function;
}

Function silu() {
  static const Function function = shared({.type = "silu",
                                           .f = [](double v) { return v * logistic(v); },
                                           .derivative =
                                               [](double v) {
                                                 const double s = logistic(v);
                                                 return s * (1.0 + v * (1.0 - s));
                                               },
                                           .layer = "SiLU"});
  return function;
}

Function gelu() {
  static const Function function =
      shared({.type = "gelu",
              .f = [](double v) { return v * cumulative(v); },
              .derivative = [](double v) { return cumulative(v) + v * density(v); },
              .layer = "GELU"});
  return function;
}

Function gelu_tanh() {
  constexpr double kRoot = 0.79788456080286535588;  // sqrt(2 / pi)
  constexpr double kCube = 0.044715;
  static const Function function = shared(
      {.type = "gelu_tanh",
       .f = [](double v) { return 0.5 * v * (1.0 + std::tanh(kRoot * (v + kCube * v * v * v))); },
       .derivative =
           [](double v) {
             const double t = std::tanh(kRoot * (v + kCube * v * v * v));
             const double slope = (1.0 - t * t) * kRoot * (1.0 + 3.0 * kCube * v * v);
             return 0.5 * (1.0 + t) + (slope == 0.0 ? 0.0 : 0.5 * v * slope);
           },
       .layer = "GELUTanh"});
  return function;
}

Function mish() {
  static const Function function =
      shared({.type = "mish",
              .f = [](double v) { return v * std::tanh(soft_plus(v)); },
              .derivative =
                  [](double v) {
                    const double t = std::tanh(soft_plus(v));
                    return t + v * (1.0 - t * t) * logistic(v);
                  },
              .layer = "Mish"});
  return function;
}

Function softplus() {
  static const Function function =
      shared({.type = "softplus", .f = soft_plus, .derivative = logistic, .layer = "Softplus"});
  return function;
}

Function erf() {
  constexpr double kTwoByRootPi = 1.12837916709551257390;
  static const Function function =
      shared({.type = "erf",
              .f = [](double v) { return std::erf(v); },
              .derivative = [](double v) { return kTwoByRootPi * std::exp(-v * v); },
              .layer = "Erf"});
  return function;
}

Function leaky_relu(float slope) {
  check_finite_option("leaky_relu", "slope", slope);
  const double s = slope;
  return shared({.type = "leaky_relu",
                 .f = [s](double v) { return v > 0.0 ? v : s * v; },
                 .derivative = [s](double v) { return v > 0.0 ? 1.0 : s; },
                 .layer = "LeakyReLU",
                 .attributes = {{"alpha", s}}});
}

Function elu(float alpha) {
  check_finite_option("elu", "alpha", alpha);
  const double a = alpha;
  return shared({.type = "elu",
                 .f = [a](double v) { return v > 0.0 ? v : a * std::expm1(v); },
                 .derivative = [a](double v) { return v > 0.0 ? 1.0 : a * std::exp(v); },
                 .layer = "ELU",
                 .attributes = {{"alpha", a}}});
}

Function selu() {
  constexpr double kScale = 1.0507009873554804934;
  constexpr double kAlpha = 1.6732632423543772848;
  static const Function function = shared(
      {.type = "selu",
       .f = [](double v) { return kScale * (v > 0.0 ? v : kAlpha * std::expm1(v)); },
       .derivative = [](double v) { return kScale * (v > 0.0 ? 1.0 : kAlpha * std::exp(v)); },
       .layer = "SELU"});
  return function;
}

Function exp() {
  static const Function function = shared({.type = "exp",
                                           .f = [](double v) { return std::exp(v); },
                                           .derivative = [](double v) { return std::exp(v); },
                                           .layer = "Exp",
                                           .forward_f32 = kernels::exp_f32,
                                           .backward_f32 = kernels::mul_f32});
  return function;
}

Function square() {
  static const Function function = shared({.type = "square",
                                           .f = [](double v) { return v * v; },
                                           .derivative = [](double v) { return 2.0 * v; },
                                           .layer = "Square"});
  return function;
}

Function power(float exponent) {
  if (!(exponent >= 0.0f && std::isfinite(exponent)))
    throw DataError("power",
                    "exponent is ",
                    exponent,
                    ", expected a finite number that is not "
                    "negative: x to a negative power is not finite at 0");
  const double p = exponent;
  const bool is_integer = p == std::floor(p);
  return shared({.type = "power",
                 .f = [=](double v) { return std::pow(is_integer ? v : std::max(v, 0.0), p); },
                 .derivative =
                     [=](double v) {
                       if (p == 0.0 || (!is_integer && v < 0.0) || (p < 1.0 && v == 0.0))
                         return 0.0;
                       return p * std::pow(v, p - 1.0);
                     },
                 .layer = "Power",
                 .attributes = {{"exponent", p}}});
}

Function sqrt() {
  static const Function function =
      shared({.type = "sqrt",
              .f = [](double v) { return std::sqrt(std::max(v, 0.0)); },
              .derivative = [](double v) { return v > 0.0 ? 0.5 / std::sqrt(v) : 0.0; },
              .layer = "Sqrt"});
  return function;
}

Function log() {
  static constexpr double kLeast = std::numeric_limits<float>::min();
  static const Function function =
      shared({.type = "log",
              .f = [](double v) { return std::log(std::max(v, kLeast)); },
              .derivative = [](double v) { return v >= kLeast ? 1.0 / v : 0.0; },
              .layer = "Logarithm"});
  return function;
}

Function abs() {
  static const Function function =
      shared({.type = "abs",
              .f = [](double v) { return std::abs(v); },
              .derivative = [](double v) { return v > 0.0   ? 1.0
                                                  : v < 0.0 ? -1.0
                                                            : 0.0; },
              .layer = "Abs"});
  return function;
}

Function clamp(float low, float high) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (!(low <= high && low < kInfinity && high > -kInfinity))
    throw DataError("clamp", "no finite number lies between the bounds ", low, " and ", high);
  const double lo = low;
  const double hi = high;
  return shared({.type = "clip",
                 .f = [=](double v) { return std::clamp(v, lo, hi); },
                 .derivative = [=](double v) { return v >= lo && v <= hi ? 1.0 : 0.0; },
                 .layer = "Clamp",
                 .attributes = {{"min", lo}, {"max", hi}}});
}

}  // namespace functions

Tensor sigmoid(const Tensor& x) { return elementwise(functions::sigmoid(), x); }
Tensor tanh(const Tensor& x) { return elementwise(functions::tanh(), x); }
Tensor hard_sigmoid(const Tensor& x) { return elementwise(functions::hard_sigmoid(), x); }
Tensor hard_sigmoid(const Tensor& x, float alpha, float beta) {
  return elementwise(functions::hard_sigmoid(alpha, beta), x);
}
Tensor hard_swish(const Tensor& x) { return elementwise(functions::hard_swish(), x); }
Tensor silu(const Tensor& x) { return elementwise(functions::silu(), x); }
Tensor gelu(const Tensor& x) { return elementwise(functions::gelu(), x); }
Tensor gelu_tanh(const Tensor& x) { return elementwise(functions::gelu_tanh(), x); }
Tensor mish(const Tensor& x) { return elementwise(functions::mish(), x); }
Tensor softplus(const Tensor& x) { return elementwise(functions::softplus(), x); }
Tensor erf(const Tensor& x) { return elementwise(functions::erf(), x); }
Tensor leaky_relu(const Tensor& x, float slope) {
  return elementwise(functions::leaky_relu(slope), x);
}
Tensor elu(const Tensor& x, float alpha) { return elementwise(functions::elu(alpha), x); }
Tensor selu(const Tensor& x) { return elementwise(functions::selu(), x); }
Tensor exp(const Tensor& x) { return elementwise(functions::exp(), x); }
Tensor square(const Tensor& x) { return elementwise(functions::square(), x); }
Tensor power(const Tensor& x, float exponent) { return elementwise(functions::power(exponent), x); }
Tensor sqrt(const Tensor& x) { return elementwise(functions::sqrt(), x); }
Tensor log(const Tensor& x) { return elementwise(functions::log(), x); }
Tensor abs(const Tensor& x) { return elementwise(functions::abs(), x); }
Tensor clamp(const Tensor& x, float low, float high) {
  return elementwise(functions::clamp(low, high), x);
}

}  // namespace quantrain
