#include "layers/add.hpp"

#include <utility>

#include "framework/autograd/ops/add.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Tensor Add::take_forward(Tensor a, Tensor b) {
  if (!(a.shape() == b.shape()))
    throw ShapeError(where(), "shapes differ: a ", a.shape(), ", b ", b.shape());
  return quantrain::add(std::move(a), std::move(b));
}

std::vector<Tensor> Add::forward(const std::vector<Tensor>& x) {
  for (size_t i = 1; i < x.size(); ++i) {
    if (!(x[i].shape() == x[0].shape())) {
      throw ShapeError(
          where(), "shapes differ: input 0 ", x[0].shape(), ", input ", i, " ", x[i].shape());
    }
  }
  return {quantrain::add(x)};
}

}  // namespace quantrain
