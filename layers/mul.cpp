#include "layers/mul.hpp"

#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Tensor Mul::forward(const Tensor& a, const Tensor& b) {
  const bool factors =
      are_channel_factors(a.shape(), b.shape()) || are_channel_factors(b.shape(), a.shape());
  if (!factors && !(a.shape() == b.shape())) {
    throw ShapeError(where(),
                     "takes inputs of equal shape, or [N, ..., C] and [N, 1, ..., 1, C]: a ",
                     a.shape(),
                     ", b ",
                     b.shape());
  }
  return quantrain::mul(a, b);
}

}  // namespace quantrain
