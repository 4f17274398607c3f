#include "layers/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <typeinfo>
#include <utility>

#include "framework/autograd/ops/batch_norm.hpp"
#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

std::string shape_text(const Tensor& x) {
  TextStream text;
  if (x.defined()) text << x.shape();
  return x.defined() ? text.str() : "none";
}

}  // namespace

BatchNorm::BatchNorm(const char* name, int64_t channels, Options options, std::vector<Takes> takes)
    : options_(options), takes_(std::move(takes)) {
  if (channels <= 0) throw ShapeError(name, "channels must be positive: ", channels);
  check_options(name);
  gamma_ = add_parameter("weight", Tensor::full({channels}, 1.0f));
  beta_ = add_parameter("bias", Tensor::zeros({channels}));
  running_mean_ = add_buffer("running_mean", Tensor::zeros({channels}));
  running_var_ = add_buffer("running_var", Tensor::full({channels}, 1.0f));
}

BatchNorm::BatchNorm(const char* name,
                     Tensor gamma,
                     Tensor beta,
                     Tensor running_mean,
                     Tensor running_var,
                     Options options,
                     std::vector<Takes> takes)
    : options_(options), takes_(std::move(takes)) {
  check_options(name);
  if (!gamma.defined() || gamma.rank() != 1 || gamma.dim(0) < 1)
    throw ShapeError(name, "gamma is [C] with C at least 1, got ", shape_text(gamma));
  for (const Tensor* tensor : {&beta, &running_mean, &running_var}) {
    if (tensor->defined() && tensor->shape() == gamma.shape()) continue;
    throw ShapeError(name,
                     "gamma, beta, running mean and running variance are [C] of the same C, got ",
                     shape_text(*tensor),
                     " beside ",
                     gamma.shape());
  }
  gamma_ = add_parameter("weight", std::move(gamma));
  beta_ = add_parameter("bias", std::move(beta));
  running_mean_ = add_buffer("running_mean", std::move(running_mean));
  running_var_ = add_buffer("running_var", std::move(running_var));
}

void BatchNorm::check_options(const char* name) const {
  if (options_.epsilon > 0.0f && std::isfinite(options_.epsilon) && options_.momentum >= 0.0f &&
      options_.momentum <= 1.0f) {
    return;
  }
  throw DataError(name,
                  "epsilon must be positive and finite, and momentum in [0, 1]: epsilon ",
                  options_.epsilon,
                  ", momentum ",
                  options_.momentum);
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
