#include "layers/linear.hpp"

#include <utility>

#include "framework/autograd/ops/linear.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Linear::Linear(int64_t in_features, int64_t out_features, Options options, Generator& generator) {
  if (in_features <= 0 || out_features <= 0) {
    throw ShapeError(
        "Linear", "features must be positive: in ", in_features, ", out ", out_features);
  }
  weight_ = add_parameter("weight", Tensor::empty({out_features, in_features}));
  if (options.bias) bias_ = add_parameter("bias", Tensor::empty({out_features}));
  init::layer_default(weight_, bias_, generator);
}

Linear::Linear(Tensor weight, Tensor bias) {
  if (!weight.defined()) throw ShapeError("Linear", "the weight is undefined");
  if (weight.rank() != 2) throw ShapeError("Linear", "a weight is [out, in], got ", weight.shape());
  if (bias.defined() && !(bias.shape() == Shape{weight.dim(0)})) {
    throw ShapeError("Linear", "bias ", bias.shape(), " does not fit weight ", weight.shape());
  }
  weight_ = add_parameter("weight", std::move(weight));
  if (bias.defined()) bias_ = add_parameter("bias", std::move(bias));
}

Tensor Linear::forward(const Tensor& x) {
  if (x.rank() < 1 || x.shape().back() != weight_.dim(1)) {
    throw ShapeError(where(),
                     "takes ",
                     weight_.dim(1),
                     " features: x ",
                     x.shape(),
                     ", weight ",
                     weight_.shape());
  }
  Weights w{weight_, bias_};
  if (slots().weight) w = slots().weight->apply(w, x);
  Tensor y = linear(x, w.weight, w.bias);
  TensorAccess::set_rescaling(y, std::move(w.rescaling));
  return y;
}

}  // namespace quantrain
