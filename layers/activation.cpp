#include "layers/activation.hpp"

#include <cmath>
#include <typeinfo>
#include <utility>

#include "framework/autograd/ops/prelu.hpp"
#include "framework/autograd/ops/relu.hpp"
#include "framework/autograd/ops/softmax.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// A module in the output slot chooses parameters for the result.
Tensor activated(const Module& layer, Tensor x, Activation activation) {
  return layer.slots().output ? activate_with_own_params(std::move(x), activation)
                              : activate(std::move(x), activation);
}

}  // namespace

Tensor ReLU::take_forward(Tensor x) { return activated(*this, std::move(x), Activation::kRelu); }

Tensor ReLU6::take_forward(Tensor x) { return activated(*this, std::move(x), Activation::kRelu6); }

Activation activation_of(const Module& layer) {
  return typeid(layer) == typeid(ReLU)    ? Activation::kRelu
         : typeid(layer) == typeid(ReLU6) ? Activation::kRelu6
                                          : Activation::kNone;
}

Tensor Softmax::forward(const Tensor& x) { return softmax(x); }

Elementwise::Elementwise(std::shared_ptr<const ElementwiseFunction> function)
    : function_(std::move(function)) {
  if (function_ == nullptr) throw GraphError("Elementwise", "the function is null");
}

std::string_view Elementwise::type() const {
  // The function is null after a move.
  if (function_ == nullptr || function_->layer.empty()) return "Elementwise";
  return function_->layer;
}

float Elementwise::number(std::string_view name) const {
  for (const auto& [key, value] : function_->attributes) {
    if (key == name) return static_cast<float>(value);
  }
  throw GraphError(type(), "its function has no attribute ", name);
}

Tensor Elementwise::forward(const Tensor& x) { return elementwise(function_, x); }

PReLU::PReLU(int64_t channels, float slope) {
  if (channels <= 0) throw ShapeError("PReLU", "channels must be positive: ", channels);
  if (!std::isfinite(slope))
    throw DataError("PReLU", "slope is ", slope, ", expected a finite number");
  weight_ = add_parameter("weight", Tensor::full({channels}, slope));
}

PReLU::PReLU(Tensor weight) {
  if (!weight.defined()) throw ShapeError("PReLU", "the slopes are undefined");
  if (weight.rank() != 1 || weight.dim(0) < 1)
    throw ShapeError("PReLU", "slopes are [channels], got ", weight.shape());
  weight_ = add_parameter("weight", std::move(weight));
}

Tensor PReLU::forward(const Tensor& x) {
  const int64_t channels = weight_.dim(0);
  if (channels != 1 && (x.rank() < 1 || x.dim(-1) != channels)) {
    throw ShapeError(where(), "takes ", channels, " channels: x ", x.shape());
  }
  return prelu(x, weight_);
}

}  // namespace quantrain
