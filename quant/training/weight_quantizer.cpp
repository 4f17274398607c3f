#include "quant/training/weight_quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain::quant {
namespace {

// Extremes of each of `channels` equal runs of w.
std::vector<Range> ranges(const Tensor& w, int64_t channels) {
  const int64_t inner = w.elements() / channels;
  std::vector<float> min(static_cast<size_t>(channels));
  std::vector<float> max(static_cast<size_t>(channels));
  kernels::min_max_channels_f32(w.elements(), channels, inner, w.floats(), min.data(), max.data());
  std::vector<Range> result;
  for (size_t c = 0; c < min.size(); ++c) result.push_back({min[c], max[c]});
  return result;
}

}  // namespace

WeightQuantizer::WeightQuantizer(const WeightConfig& config,
                                 const Weights& own,
                                 std::shared_ptr<Folding> folding)
    : config_(config), folding_(std::move(folding)) {
  if (config.bits < 2 || config.bits > 8) {
    throw QuantError("WeightQuantizer", "weights have 2 to 8 bits, got ", config.bits);
  }
  if (config.estimator != Estimator::kLearned) return;
  if (config.scheme == QScheme::kAffine)
    throw QuantError("WeightQuantizer", "a learned scale needs symmetric weights");
  const NoGrad no_grad;
  const Tensor weight = folding_ ? fold_batch_norm(own, *folding_).weight : own.weight;
  const int64_t channels = config.per_channel ? weight.dim(0) : 1;
  const int64_t inner = weight.elements() / channels;
  const QType type{config.bits, true, config.narrow};
  scale_ = Tensor::empty({channels});
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0.0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i)
      sum += std::abs(static_cast<double>(weight.data()[i]));
    const double start =
        2.0 * sum / static_cast<double>(inner) / std::sqrt(static_cast<double>(type.qmax()));
    scale_.mutable_data()[c] = std::max(static_cast<float>(start), kSmallestLearnedScale);
  }
  scale_ = add_parameter("scale", scale_);
}

QParams WeightQuantizer::params_for(const Weights& weights, const Tensor& x) const {
  const int64_t outputs = weights.weight.dim(0);
  const int64_t channels = config_.per_channel ? outputs : 1;
  QParams params{{config_.bits,
                  config_.scheme == QScheme::kSymmetric,
                  config_.narrow && config_.scheme == QScheme::kSymmetric},
                 config_.per_channel ? 0 : -1,
                 {},
                 {}};
  const std::vector<Range> extremes = ranges(weights.weight, channels);
  const float scale_x = x.kind() == ValueKind::kCodes ? x.codes()->params.scale[0] : 0.0f;
  for (int64_t c = 0; c < channels; ++c) {
    const Range range = extremes[static_cast<size_t>(c)];
    if (config_.scheme == QScheme::kAffine) {
      const ScaleZero chosen = choose_params(range, params.type, QScheme::kAffine, where());
      params.scale.push_back(chosen.scale);
      params.zero_point.push_back(chosen.zero_point);
      continue;
    }
    float bias = 0.0f;  // the largest of those that share this scale
    if (weights.bias.defined() && scale_x > 0.0f) {
      const float* const b = weights.bias.data();
      for (int64_t o = config_.per_channel ? c : 0; o < (config_.per_channel ? c + 1 : outputs);
           ++o) {
        bias = std::isfinite(b[o]) ? std::max(bias, std::abs(b[o])) : b[o];
      }
    }
    if (config_.estimator == Estimator::kLearned) {
      const float by_bias =
          bias != 0.0f ? weight_scale(0.0f, bias, scale_x, params.type, where()) : 0.0f;
      params.scale.push_back(std::max({scale_.data()[c], by_bias, kSmallestLearnedScale}));
    } else {
      const float max_abs = std::max(-range.min, range.max);
      params.scale.push_back(
          weight_scale(max_abs, bias, scale_x > 0.0f ? scale_x : 1.0f, params.type, where()));
    }
    params.zero_point.push_back(0);
  }
  return params;
}

Weights WeightQuantizer::apply(const Weights& own, const Tensor& x) {
  if (!fake_quantize_on_) {
    if (folding_) folding_->factor = Tensor();
    return own;
  }
  Weights weights = folding_ ? fold_batch_norm(own, *folding_) : own;
  const QParams params = params_for(weights, x);
  const FakeQuantizeOptions options{
      .storage = config_.scheme == QScheme::kSymmetric ? CodeStorage::kS8 : CodeStorage::kU8,
      .clamped = config_.estimator != Estimator::kPlain,
      .codes = simulation_ == Simulation::kInteger};
  weights.weight = scale_.defined() ? fake_quantize_learned(weights.weight, scale_, params, options)
                                    : fake_quantize(weights.weight, params, options);
  if (folding_ && folding_->uses_batch_statistics()) weights.bias = Tensor();
  return weights;
}

}  // namespace quantrain::quant
