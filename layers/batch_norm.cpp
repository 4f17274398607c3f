#include "layers/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <typeinfo>
#include <utility>

#include "framework/autograd/ops/batch_norm.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

BatchNorm::BatchNorm(const char* name, int64_t channels, Options options, std::vector<Takes> takes)
    : options_(options), takes_(std::move(takes)) {
  if (channels <= 0) throw ShapeError(name, "channels must be positive: ", channels);
  if (!(options.epsilon > 0.0f) || !std::isfinite(options.epsilon) ||
      !(options.momentum >= 0.0f && options.momentum <= 1.0f)) {
    throw DataError(name,
                    "epsilon must be positive and finite, and momentum in [0, 1]: epsilon ",
                    options.epsilon,
                    ", momentum ",
                    options.momentum);
  }
  gamma_ = add_parameter("weight", Tensor::full({channels}, 1.0f));
  beta_ = add_parameter("bias", Tensor::zeros({channels}));
  running_mean_ = add_buffer("running_mean", Tensor::zeros({channels}));
  running_var_ = add_buffer("running_var", Tensor::full({channels}, 1.0f));
}

Tensor BatchNorm::take_forward(Tensor x) { return normalize(std::move(x), Activation::kNone); }

bool BatchNorm::fuse(Tensor& x, Activation activation, Module*& /*output*/) {
  const bool derived = typeid(*this) != typeid(BatchNorm1d) && typeid(*this) != typeid(BatchNorm2d);
  if (derived || keeps_values()) return false;
  x = normalize(std::move(x), activation);
  return true;
}

Tensor BatchNorm::normalize(Tensor x, Activation activation) {
  const int64_t channels = gamma_.dim(0);
  const bool fits = std::any_of(
      takes_.begin(), takes_.end(), [&](const Takes& kind) { return x.rank() == kind.rank; });
  if (!fits || x.dim(-1) != channels) {
    std::string kinds;
    for (const Takes& kind : takes_)
      kinds += (kinds.empty() ? "" : " or ") + (kind.axes + std::to_string(channels)) + "]";
    throw ShapeError(where(), "takes ", kinds, ": x ", x.shape());
  }
  return batch_norm(std::move(x),
                    gamma_,
                    beta_,
                    running_mean_,
                    running_var_,
                    {.momentum = options_.momentum,
                     .epsilon = options_.epsilon,
                     .training = training(),
                     .activation = activation});
}

}  // namespace quantrain
