#include "quant/prepare/batch_norm_folding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/prepare/fake_quantize.hpp"

namespace quantrain::quant {
namespace {

constexpr float kSmallestGamma = 1e-5f;

// Computes the folded bias without recording a graph, by the operations that fold_bias() would
// record, in the same order.
Tensor bias_value(const Tensor& bias, const Tensor& factor, const Folding& folding) {
  const int64_t channels = folding.gamma.elements();
  Tensor folded = Tensor::empty({channels});
  float* const out = folded.mutable_data();
  const float* const own = bias.defined() ? bias.data() : nullptr;
  const Floats means = folding.running_mean.floats();
  const Floats betas = folding.beta.floats();
  const Floats factors = factor.floats();
  for (int64_t c = 0; c < channels; ++c) {
    const float centred = own != nullptr ? own[c] - means[c] : -means[c];
    out[c] = betas[c] + centred * factors[c];
  }
  return folded;
}

// What the product that folds the batch norm changed in its result u; null if no product folds it,
// or the product runs in float.
std::shared_ptr<const Rescaling> rescaling_of(const Tensor& u, const Folding& folding) {
  if (folding.product.empty()) return nullptr;
  const std::shared_ptr<const Rescaling> rescaling = TensorAccess::rescaling(u);
  if (rescaling == nullptr) {
    throw GraphError(folding.path,
                     "the input is not the result of ",
                     folding.product,
                     ", whose weights contain this batch norm: an operation in between did not run "
                     "when the network was prepared; let it run before ",
                     folding.product,
                     " or after the batch norm");
  }
  return rescaling->factor.defined() ? rescaling : nullptr;
}

}  // namespace

Folding::Folding(std::string layer_path, const BatchNorm& layer)
    : path(std::move(layer_path)),
      gamma(layer.gamma()),
      beta(layer.beta()),
      running_mean(layer.running_mean()),
      running_var(layer.running_var()),
      epsilon(layer.epsilon()),
      momentum(layer.momentum()) {}

FoldedBias fold_bias(const Weights& product, const Folding& folding) {
  const int64_t channels = folding.gamma.elements();
  if (product.bias.defined() && !(product.bias.shape() == Shape{channels})) {
    throw ShapeError(folding.path,
                     "bias ",
                     product.bias.shape(),
                     " does not fit a batch norm of ",
                     channels,
                     " channels");
  }
  Tensor inverse = Tensor::empty({channels});  // 1 / sqrt(running_var + epsilon)
  Tensor lift;  // added to the factor where |gamma| is too small; undefined if it never is
  float* const inverse_data = inverse.mutable_data();
  const Floats gammas = folding.gamma.floats();
  const Floats variances = folding.running_var.floats();
  for (int64_t c = 0; c < channels; ++c) {
    const float gamma = gammas[c];
    inverse_data[c] = 1.0f / std::sqrt(variances[c] + folding.epsilon);
    if (std::abs(gamma) < kSmallestGamma) {
      if (!lift.defined()) lift = Tensor::zeros({channels});
      lift.mutable_data()[c] = (std::copysign(kSmallestGamma, gamma) - gamma) * inverse_data[c];
    }
  }
  Tensor factor = mul(folding.gamma, inverse);
  if (lift.defined()) factor = quantrain::add(factor, lift);
  if (folding.uses_batch_statistics()) {
    Tensor bias = bias_value(product.bias, factor, folding);
    return {std::move(bias), std::move(factor)};
  }
  const Tensor mean = folding.running_mean.detach();
  const Tensor centred =
      product.bias.defined() ? sub(product.bias, mean) : mul(mean, Tensor::full({1}, -1.0f));
  Tensor bias = quantrain::add(folding.beta, mul(centred, factor));
  return {std::move(bias), std::move(factor)};
}

Tensor fold_weight(const Tensor& weight, const Tensor& factor) {
  std::vector<int64_t> per_output(static_cast<size_t>(weight.rank()), 1);
  per_output[0] = factor.elements();
  return mul(weight, reshape(factor, Shape(per_output)));
}

Weights fold_batch_norm(const Weights& product, const Folding& folding) {
  FoldedBias folded = fold_bias(product, folding);
  return {fold_weight(product.weight, folded.factor), std::move(folded.bias)};
}

Folding& PreparedBatchNorm::folding() & {
  if (folding_ == nullptr) throw GraphError(type(), "the layer was moved from");
  return *folding_;
}

Tensor PreparedBatchNorm::normalized(Tensor u, BatchNormOptions options) {
  const Folding& f = folding();
  options.momentum = f.momentum;
  options.epsilon = f.epsilon;
  options.training = f.uses_batch_statistics();
  const std::shared_ptr<const Rescaling> scaled = rescaling_of(u, f);
  if (scaled && !options.training) return u;
  if (scaled) {
    return rescaled_batch_norm(std::move(u),
                               scaled->factor,
                               scaled->bias,
                               f.gamma,
                               f.beta,
                               f.running_mean,
                               f.running_var,
                               options);
  }
  return batch_norm(std::move(u), f.gamma, f.beta, f.running_mean, f.running_var, options);
}

Tensor PreparedBatchNorm::take_forward(Tensor u) { return normalized(std::move(u), {}); }

bool PreparedBatchNorm::fuse(Tensor& u, Activation activation, Module*& output) {
  if (!folding().uses_batch_statistics() || keeps_values()) return false;
  BatchNormOptions options{.activation = activation};
  auto* const quantizer = dynamic_cast<FakeQuantize*>(output);
  if (quantizer != nullptr && quantizer->takes_range()) {
    options.quantize = [quantizer, samples = u.dim(0)](const Range& range) {
      return quantizer->params_for(range, samples);
    };
    output = nullptr;
  }
  u = normalized(std::move(u), options);
  return true;
}

}  // namespace quantrain::quant
