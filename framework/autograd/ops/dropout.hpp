#pragma once

#include <cstdint>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

struct DropoutOptions {
  float p = 0.5f;        ///< probability that an element becomes 0
  uint64_t seed = 0;     ///< decides, together with counter, which elements become 0
  uint64_t counter = 0;  ///< must differ from call to call
  bool training = true;
};

/// y = x * keep / (1 - p), keep = 0 with probability p, else 1; y = 0 for p = 1. Whether an element
/// is kept depends only on seed, counter and the element's index, so the result is the same on
/// every machine and with any number of threads. In evaluation, and for p = 0, the result is x
/// itself and nothing is recorded.
/// Shapes: x [...] -> y like x.
/// Gradient: grad_x = grad_y * keep / (1 - p), 0 for p = 1.
/// Throws: DataError unless 0 <= p <= 1.
/// Source: Srivastava et al. 2014; ONNX Dropout.
Tensor dropout(const Tensor& x, const DropoutOptions& options);

}  // namespace quantrain
