#include "framework/autograd/ops/sigmoid.hpp"

#include <cmath>

#include "framework/autograd/ops/elementwise.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {

Tensor sigmoid(const Tensor& x) {
  static const auto function = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "sigmoid",
                          .f = [](double v) { return 1.0 / (1.0 + std::exp(-v)); },
                          .derivative =
                              [](double v) {
                                const double y = 1.0 / (1.0 + std::exp(-v));
                                return y * (1.0 - y);
                              },
                          .layer = "Sigmoid",
                          .forward_f32 = kernels::sigmoid_f32,
                          .backward_f32 = kernels::sigmoid_backward_f32});
  return elementwise(function, x);
}

}  // namespace quantrain
