#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A function of one real number. Float operation, gradient, simulation and the deployed lookup
/// table all follow from f and its derivative.   docs/quantization.md (18)
struct ElementwiseFunction {
  std::string type;                                          ///< ONNX's operator name in snake_case
  std::function<double(double)> f;                           ///< finite where its argument is
  std::function<double(double)> derivative;                  ///< f' of the argument
  std::string layer{};                                       ///< that runs it, to name in messages
  std::vector<std::pair<std::string, double>> attributes{};  ///< numbers that f depends on
  /// Faster loops over floats, where training spends time in them: y[i] = f(x[i]), and grad_x[i] =
  /// grad_y[i] * f'(x[i]) from the results y.
  void (*forward_f32)(int64_t n, const float* x, float* y) = nullptr;
  void (*backward_f32)(int64_t n, const float* y, const float* grad_y, float* grad_x) = nullptr;
};

/// y = f(x), in double, rounded to float32 once.
/// Shapes: x [...]  ->  y like x. Activation codes give an integer lookup; the FakeQuantize
/// after it sets its parameters.   docs/quantization.md (18)
/// Gradient: grad_x = grad_y * f'(x).
/// Throws: GraphError if the function lacks its type, f or derivative.
/// Source: XNNPACK's unary elementwise operators.
Tensor elementwise(std::shared_ptr<const ElementwiseFunction> function, const Tensor& x);

}  // namespace quantrain
