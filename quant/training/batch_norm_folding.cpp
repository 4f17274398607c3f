#include "quant/training/batch_norm_folding.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

constexpr float kSmallestGamma = 1e-5f;

}  // namespace

Folding::Folding(std::string layer_path, const BatchNorm& layer)
    : path(std::move(layer_path)),
      gamma(layer.gamma()),
      beta(layer.beta()),
      running_mean(layer.running_mean()),
      running_var(layer.running_var()),
      epsilon(layer.epsilon()),
      momentum(layer.momentum()) {}

Tensor fold_bias(const Weights& product, Folding& folding) {
  const int64_t channels = folding.gamma.elements();
  Tensor inverse = Tensor::empty({channels});  // 1 / sqrt(running_var + epsilon)
  Tensor lift = Tensor::zeros({channels});     // added to the factor where |gamma| is too small
  float* const inverse_data = inverse.mutable_data();
  float* const lift_data = lift.mutable_data();
  bool lifted = false;
  for (int64_t c = 0; c < channels; ++c) {
    const float gamma = folding.gamma.data()[c];
    inverse_data[c] = 1.0f / std::sqrt(folding.running_var.data()[c] + folding.epsilon);
    if (std::abs(gamma) < kSmallestGamma) {
      lift_data[c] = (std::copysign(kSmallestGamma, gamma) - gamma) * inverse_data[c];
      lifted = true;
    }
  }
  Tensor factor = mul(folding.gamma, inverse);
  if (lifted) factor = quantrain::add(factor, lift);
  folding.factor = factor;
  folding.bias = product.bias;

  std::optional<NoGrad> no_grad;
  if (folding.uses_batch_statistics()) no_grad.emplace();
  const Tensor mean = folding.running_mean.detach();
  const Tensor centred =
      product.bias.defined() ? sub(product.bias, mean) : mul(mean, Tensor::full({1}, -1.0f));
  return quantrain::add(folding.beta, mul(centred, factor));
}

Tensor fold_weight(const Tensor& weight, const Folding& folding) {
  std::vector<int64_t> per_output(static_cast<size_t>(weight.rank()), 1);
  per_output[0] = folding.factor.elements();
  return mul(weight, reshape(folding.factor, Shape(per_output)));
}

Weights fold_batch_norm(const Weights& product, Folding& folding) {
  Tensor bias = fold_bias(product, folding);
  return {fold_weight(product.weight, folding), std::move(bias)};
}

Folding& PreparedBatchNorm::folding() & {
  if (folding_ == nullptr) throw GraphError(type(), "the layer was moved from");
  return *folding_;
}

Tensor PreparedBatchNorm::forward(const Tensor& u) {
  const Folding& f = folding();
  const BatchNormOptions options{
      .momentum = f.momentum, .epsilon = f.epsilon, .training = f.uses_batch_statistics()};
  const bool folded = f.factor.defined();
  if (folded && !options.training) return u;
  if (folded) {
    return rescaled_batch_norm(
        u, f.factor, f.bias, f.gamma, f.beta, f.running_mean, f.running_var, options);
  }
  return batch_norm(u, f.gamma, f.beta, f.running_mean, f.running_var, options);
}

}  // namespace quantrain::quant
