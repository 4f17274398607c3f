#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

struct GradCheckOptions {
  /// An element x moves by step * max(1, |x|) both ways. The difference quotient errs by about
  /// step^2 / 6 times the third derivative, and by float32's 6e-8 / step times the value: 2^-7
  /// keeps both near 1e-5 where these are about 1, and x + step is exact for most x.
  float step = 0x1p-7f;
  /// Largest max_error that is ok: the first error above, with room for third derivatives of 100
  /// times the largest gradient.
  double tolerance = 1e-3;
  /// Of the numbers that a result with several elements is multiplied with.
  uint64_t seed = 1;
};

struct GradCheckResult {
  /// |analytic - numeric|, divided by the largest |numeric| of the same input; where that is so
  /// small that rounding of the values, once each, could make up the tolerance, by what makes
  /// rounding just that. Infinite where a gradient is not finite.
  double max_error = 0.0;
  std::string worst;  ///< which input and element it belongs to, and both values
  bool ok = true;
};

/// Compares backward with central finite differences, for every element of every input that
/// requires a gradient. The function reads the inputs as they are at its call; a result that is not
/// a scalar is multiplied with fixed random numbers in [-1, 1) and summed. Keep elements further
/// than a step away from kinks (ReLU's 0, ties of a max pool). Inputs and their gradients are left
/// as they were found.
/// Throws: GraphError if no input requires a gradient, one is not a leaf, the result is not
/// differentiable, or a second call gives another result.
GradCheckResult grad_check(const std::function<Tensor()>& function,
                           const std::vector<Tensor>& inputs,
                           const GradCheckOptions& options = {});

}  // namespace quantrain
