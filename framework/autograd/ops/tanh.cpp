#include "framework/autograd/ops/tanh.hpp"

#include <cmath>

#include "framework/autograd/ops/elementwise.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {

Tensor tanh(const Tensor& x) {
  static const auto function = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "tanh",
                          .f = [](double v) { return std::tanh(v); },
                          .derivative =
                              [](double v) {
                                const double y = std::tanh(v);
                                return 1.0 - y * y;
                              },
                          .layer = "Tanh",
                          .forward_f32 = kernels::tanh_f32,
                          .backward_f32 = kernels::tanh_backward_f32});
  return elementwise(function, x);
}

}  // namespace quantrain
