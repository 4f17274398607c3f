#include "layers/batch_norm.hpp"

#include "framework/autograd/ops/batch_norm2d.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

BatchNorm2d::BatchNorm2d(int64_t channels, Options options) : options_(options) {
  if (channels <= 0) throw ShapeError("BatchNorm2d", "channels must be positive: ", channels);
  if (!(options.epsilon > 0.0f) || !(options.momentum >= 0.0f && options.momentum <= 1.0f)) {
    throw DataError("BatchNorm2d",
                    "epsilon must be positive and momentum in [0, 1]: epsilon ",
                    options.epsilon,
                    ", momentum ",
                    options.momentum);
  }
  gamma_ = add_parameter("weight", Tensor::full({channels}, 1.0f));
  beta_ = add_parameter("bias", Tensor::zeros({channels}));
  running_mean_ = add_buffer("running_mean", Tensor::zeros({channels}));
  running_var_ = add_buffer("running_var", Tensor::full({channels}, 1.0f));
}
Tensor BatchNorm2d::forward(const Tensor& x) {
  if (x.rank() != 4 || x.dim(3) != gamma_.dim(0)) {
    throw ShapeError(where(), "takes images [N, H, W, ", gamma_.dim(0), "]: x ", x.shape());
  }
  return batch_norm2d(
      x,
      gamma_,
      beta_,
      running_mean_,
      running_var_,
      {.momentum = options_.momentum, .epsilon = options_.epsilon, .training = training()});
}

}  // namespace quantrain
