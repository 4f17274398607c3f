#include "framework/autograd/ops/hard_swish.hpp"

#include <algorithm>

#include "framework/autograd/ops/elementwise.hpp"

namespace quantrain {

Tensor hard_swish(const Tensor& x) {
  static const auto function = std::make_shared<const ElementwiseFunction>(ElementwiseFunction{
      .type = "hard_swish",
      .f = [](double v) { return v * std::clamp(v + 3.0, 0.0, 6.0) / 6.0; },
      .derivative = [](double v) { return v < -3.0  ? 0.0
                                          : v > 3.0 ? 1.0
                                                    : (2.0 * v + 3.0) / 6.0; },
      .layer = "HardSwish"});
  return elementwise(function, x);
}

}  // namespace quantrain
