#include "layers/activation.hpp"

#include "framework/autograd/ops/hard_swish.hpp"
#include "framework/autograd/ops/relu.hpp"
#include "framework/autograd/ops/sigmoid.hpp"
#include "framework/autograd/ops/tanh.hpp"

namespace quantrain {

Tensor ReLU::forward(const Tensor& x) { return relu(x); }

Tensor ReLU6::forward(const Tensor& x) { return relu6(x); }

Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }

Tensor Tanh::forward(const Tensor& x) { return quantrain::tanh(x); }

Tensor HardSwish::forward(const Tensor& x) { return hard_swish(x); }

}  // namespace quantrain
