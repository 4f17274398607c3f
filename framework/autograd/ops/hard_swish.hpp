#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = x * min(max(x + 3, 0), 6) / 6.
/// Shapes: x [...]  ->  y like x. Codes as elementwise().   docs/quantization.md (18)
/// Gradient: grad_x = grad_y times 0 for x < -3, 1 for x > 3, (2 x + 3) / 6 between.
/// Source: Howard et al. 2019, section 5.2; ONNX HardSwish.
Tensor hard_swish(const Tensor& x);

}  // namespace quantrain
