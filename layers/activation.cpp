#include "layers/activation.hpp"

#include "framework/autograd/ops/hard_swish.hpp"
#include "framework/autograd/ops/relu.hpp"

namespace quantrain {

Tensor ReLU::forward(const Tensor& x) { return relu(x); }

Tensor ReLU6::forward(const Tensor& x) { return relu6(x); }

Tensor HardSwish::forward(const Tensor& x) { return hard_swish(x); }

}  // namespace quantrain
