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
Tensor hard_swish(const Tensor& x) { return elementwise(functions::hard_swish(), x); }
Tensor silu(const Tensor& x) { return elementwise(functions::silu(), x); }
Tensor gelu(const Tensor& x) { return elementwise(functions::gelu(), x); }
Tensor leaky_relu(const Tensor& x, float slope) {
  return elementwise(functions::leaky_relu(slope), x);
}
Tensor elu(const Tensor& x, float alpha) { return elementwise(functions::elu(alpha), x); }
Tensor exp(const Tensor& x) { return elementwise(functions::exp(), x); }
Tensor square(const Tensor& x) { return elementwise(functions::square(), x); }
Tensor abs(const Tensor& x) { return elementwise(functions::abs(), x); }
Tensor clamp(const Tensor& x, float low, float high) {
  return elementwise(functions::clamp(low, high), x);
}

}  // namespace quantrain
