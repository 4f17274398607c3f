#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

struct GradCheckOptions {
  /// Each element x moves up and down by step * max(1, |x|). The difference quotient has two
  /// errors. The first is about step^2 / 6 times the third derivative. The second comes from
  /// rounding to float32 and is about 6e-8 / step times the value. A step of 2^-7 keeps both near
  /// 1e-5 if the third derivative and the value are about 1. It is a power of two, so that x + step
  /// is exact for most |x| < 1.
  float step = 0x1p-7f;
  /// The check passes if max_error is at most this. The default leaves room for a third derivative
  /// of 100 times the largest gradient.
  double tolerance = 1e-3;
  /// Seed of the random numbers that the result is multiplied by.
  uint64_t seed = 1;
};

struct GradCheckResult {
  /// Largest |analytic - numeric| / scale. The scale is the largest |numeric| of the same input. If
  /// that scale is so small that float32 rounding alone could exceed the tolerance, a larger scale
  /// is used. max_error is infinite if a gradient is not finite.
  double max_error = 0.0;
  std::string worst;  ///< the input and element with max_error, and both gradients
  bool ok = true;
};

/// Compares backward with central finite differences, for every element of every input that
/// requires a gradient. The function must read the inputs' current values at each call. Its result
/// is multiplied by fixed random numbers in [-1, 1) and summed. Keep elements more than a step away
/// from kinks (ReLU's 0, ties of a max pool). Restores the inputs and their gradients at the end.
/// Throws: GraphError if the function is null, no input requires a gradient, an input is not a
/// leaf, the result requires no gradient, or a second call gives another result.
GradCheckResult grad_check(const std::function<Tensor()>& function,
                           const std::vector<Tensor>& inputs,
                           const GradCheckOptions& options = {});

}  // namespace quantrain
