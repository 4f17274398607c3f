#include "quant/methods/oscillation.hpp"

#include <algorithm>
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::quant {
namespace {

constexpr const char* kFreezing = "OscillationFreezing";

/// The codes of a layer's weights, one by one.
class WeightCodes {
 public:
  explicit WeightCodes(const Product& product)
      : params_(product.slot->params()), factor_(product.folded().factor) {
    const int64_t n = product.slot->own().weight.elements();
    per_scale_ = n / std::ssize(params_.scale);
    per_factor_ = factor_.defined() ? n / factor_.elements() : n;
  }

  float code(float weight, int64_t i) const {
    const auto c = static_cast<size_t>(i / per_scale_);
    const float folded = weight * factor(i);
    return params_.type.is_sign()
               ? static_cast<float>(sign_code(folded))
               : limited(unclamped_code(folded, params_.scale[c], params_.zero_point[c]));
  }
  /// The code next to a mean of codes; the lowest one for NaN, which a state from a file may hold.
  float nearest(float mean) const {
    return params_.type.is_sign() ? static_cast<float>(sign_code(mean)) : limited(half_even(mean));
  }
  /// The weight with this code; not finite if the factor is too small.
  float weight(float code, int64_t i) const {
    const auto c = static_cast<size_t>(i / per_scale_);
    const auto q = static_cast<int32_t>(nearest(code));
    return dequantize(q, params_.scale[c], params_.zero_point[c]) / factor(i);
  }

 private:
  float limited(float code) const {
    const auto qmin = static_cast<float>(params_.type.qmin());
    return std::min(std::max(qmin, code), static_cast<float>(params_.type.qmax()));
  }
  float factor(int64_t i) const {
    return factor_.defined() ? factor_.data()[i / per_factor_] : 1.0f;
  }

  QParams params_;
  Tensor factor_;
  int64_t per_scale_ = 1;
  int64_t per_factor_ = 1;
};

}  // namespace

OscillationFreezing::OscillationFreezing(Module& net, const OscillationOptions& options)
    : options_(options), layers_(std::make_shared<std::vector<Layer>>()) {
  const DefaultRounding rounding;
  const Plugged plugged(net);
  if (plugged.empty())
    throw GraphError(kFreezing, "the network is not prepared: call prepare_qat first");
  if (!(options.threshold >= 0.0f && options.threshold < 1.0f)) {
    throw DataError(
        kFreezing, "threshold is ", options.threshold, ", expected at least 0 and less than 1");
  }
  if (!(options.momentum > 0.0f && options.momentum <= 1.0f))
    throw DataError(kFreezing, "momentum is ", options.momentum, ", expected a number in (0, 1]");
  std::vector<Product> products;
  for (const NamedModule& entry : net.named_modules()) {
    auto* const slot = dynamic_cast<WeightQuantizer*>(entry.module->slots().weight.get());
    if (slot != nullptr)
      products.push_back({.path = entry.name, .layer = entry.module, .slot = slot});
  }
  if (products.empty()) throw QuantError(kFreezing, "the network has no quantized weights");
  find_fixed(products);
  for (const Product& product : products) {
    if (!product.fixed.empty()) {
      throw QuantError(
          kFreezing, "the weights of \"", product.path, "\" cannot be frozen: ", product.fixed);
    }
    if (product.slot->config().estimator != Estimator::kLearned && !product.slot->is_given()) {
      throw QuantError(kFreezing,
                       "the scales of \"",
                       product.path,
                       "\" follow from its weights, which freezing moves: set weight.estimator = "
                       "Estimator::kLearned");
    }
    const Shape& shape = product.slot->own().weight.shape();
    Layer layer{
        .product = product,
        .code = Tensor::empty(shape),
        .direction = Tensor::empty(shape),
        .frequency = Tensor::empty(shape),
        .mean = Tensor::empty(shape),
        .frozen = Tensor::zeros(shape),
        .bits = IntegerBuffer({1}, {.value = kMostBits, .least = kLeastBits, .most = kMostBits})};
    start(layer);
    layers_->push_back(std::move(layer));
  }
}

void OscillationFreezing::start(Layer& layer) {
  const WeightCodes codes(layer.product);
  const Floats own = layer.product.slot->own().weight.floats();
  float* const code = layer.code.mutable_data();
  float* const mean = layer.mean.mutable_data();
  for (int64_t i = 0; i < own.size(); ++i) code[i] = mean[i] = codes.code(own[i], i);
  for (Tensor* zeros : {&layer.direction, &layer.frequency})
    std::fill_n(zeros->mutable_data(), own.size(), 0.0f);
  layer.bits.fill(layer.product.slot->bits());
}

void OscillationFreezing::update(Layer& layer) const {
  if (layer.bits.item() != layer.product.slot->bits()) start(layer);
  const WeightCodes codes(layer.product);
  Tensor own = layer.product.slot->own().weight;
  float* const w = own.mutable_data();
  float* const code = layer.code.mutable_data();
  float* const direction = layer.direction.mutable_data();
  float* const frequency = layer.frequency.mutable_data();
  float* const mean = layer.mean.mutable_data();
  float* const frozen = layer.frozen.mutable_data();
  const float m = options_.momentum;
  parallel_for(own.elements(), kernels::kFunctionGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (frozen[i] == 0.0f) {
        const float now = codes.code(w[i], i);
        const float change = now > code[i] ? 1.0f : now < code[i] ? -1.0f : 0.0f;
        const float turned = change * direction[i] < 0.0f ? 1.0f : 0.0f;
        if (change != 0.0f) direction[i] = change;
        frequency[i] = m * turned + (1.0f - m) * frequency[i];
        mean[i] = m * now + (1.0f - m) * mean[i];
        code[i] = now;
        if (frequency[i] > options_.threshold) {
          frozen[i] = 1.0f;
          code[i] = codes.nearest(mean[i]);
        }
      }
      if (frozen[i] == 0.0f) continue;
      const float at_code = codes.weight(code[i], i);
      if (std::isfinite(at_code)) w[i] = at_code;
    }
  });
}

void OscillationFreezing::step() {
  const DefaultRounding rounding;
  const NoGrad no_grad;
  for (Layer& layer : *layers_) update(layer);
}

std::function<void(int64_t, float)> OscillationFreezing::after_step() {
  return [copy = *this](int64_t, float) mutable { copy.step(); };
}

std::vector<NamedState> OscillationFreezing::state() const {
  std::vector<NamedState> all;
  for (const Layer& layer : *layers_) {
    const auto add = [&](const char* name, const Tensor& values) {
      all.emplace_back("oscillation." + layer.product.path + '.' + name, values);
    };
    add("code", layer.code);
    add("direction", layer.direction);
    add("frequency", layer.frequency);
    add("mean", layer.mean);
    add("frozen", layer.frozen);
    all.emplace_back("oscillation." + layer.product.path + ".bits", layer.bits);
  }
  return all;
}

int64_t OscillationFreezing::frozen() const {
  int64_t count = 0;
  for (const Layer& layer : *layers_)
    for (int64_t i = 0; i < layer.frozen.elements(); ++i)
      count += layer.frozen.data()[i] != 0.0f ? 1 : 0;
  return count;
}

int64_t OscillationFreezing::weights() const {
  int64_t count = 0;
  for (const Layer& layer : *layers_) count += layer.code.elements();
  return count;
}

}  // namespace quantrain::quant
