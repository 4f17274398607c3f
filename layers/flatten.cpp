#include "layers/flatten.hpp"

#include "framework/autograd/ops/flatten.hpp"

namespace quantrain {

Tensor Flatten::forward(const Tensor& x) { return flatten(x); }

}  // namespace quantrain
