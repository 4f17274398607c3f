#include "layers/add.hpp"

#include "framework/autograd/ops/add.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Tensor Add::forward(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()))
    throw ShapeError(where(), "shapes differ: a ", a.shape(), ", b ", b.shape());
  return quantrain::add(a, b);
}

}  // namespace quantrain
