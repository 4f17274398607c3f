#include "layers/add.hpp"

#include "framework/autograd/ops/add.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Tensor Add::forward(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()))
    throw ShapeError(where(), "shapes differ: a ", a.shape(), ", b ", b.shape());
  return quantrain::add(a, b);
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
