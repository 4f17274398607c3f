#include "layers/concat.hpp"

#include "framework/autograd/ops/concat.hpp"

namespace quantrain {

Tensor Concat::forward(const Tensor& a, const Tensor& b) { return concat({a, b}, -1); }

std::vector<Tensor> Concat::forward(const std::vector<Tensor>& x) { return {concat(x, -1)}; }

}  // namespace quantrain
