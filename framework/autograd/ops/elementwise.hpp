#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A function of one real number. The float operation, gradient, simulation and the deployed lookup
/// table all follow from f and its derivative.   docs/quantization.md (18)
struct ElementwiseFunction {
  std::string type;                          ///< the operation's name in snake_case
  std::function<double(double)> f;           ///< finite for finite arguments
  std::function<double(double)> derivative;  ///< f'
  std::string layer{};                       ///< name of the layer that computes f, for messages
  std::vector<std::pair<std::string, double>> attributes{};  ///< numbers on which f depends
  /// Optional faster loops over floats. forward_f32 computes y[i] = f(x[i]). backward_f32 computes
  /// grad_x[i] = grad_y[i] * f'(x[i]) from y[i] instead of x[i].
  void (*forward_f32)(int64_t n, const float* x, float* y) = nullptr;
  void (*backward_f32)(int64_t n, const float* y, const float* grad_y, float* grad_x) = nullptr;
};

/// y = f(x), computed in double and rounded to float32 once. For floats, forward_f32 is used
/// instead if it is set.
/// Shapes: x [...]  ->  y like x. If x holds activation codes, y is a lookup in a table of codes;
/// the FakeQuantize that follows sets the parameters of y.   docs/quantization.md (18)
/// Gradient: grad_x = grad_y * f'(x).
/// Throws: GraphError if the function is null, or lacks its type, f or derivative.
/// Source: XNNPACK's unary elementwise operators.
Tensor elementwise(std::shared_ptr<const ElementwiseFunction> function, const Tensor& x);

}  // namespace quantrain
