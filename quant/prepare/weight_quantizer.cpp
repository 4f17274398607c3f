#include "quant/prepare/weight_quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "layers/dry_run.hpp"
#include "quant/prepare/methods/power_of_two.hpp"

namespace quantrain::quant {
namespace {

// The range of channel c times its factor; an undefined factor is 1. If the product for either end
// is NaN (0 times infinity), both ends of the result are NaN.
Range scaled(const Range& range, const Tensor& factors, int64_t c) {
  const float factor = factors.defined() ? factors.data()[c] : 1.0f;
  const float a = range.min * factor;
  const float b = range.max * factor;
  if (std::isnan(a) || std::isnan(b)) return {a + b, a + b};
  return factor < 0.0f ? Range{b, a} : Range{a, b};
}

// The smallest range that holds all given ranges; NaN if one of them is NaN.
Range joined(const std::vector<Range>& ranges) {
  Range all = ranges[0];
  for (const Range& range : ranges) {
    if (std::isnan(range.min)) return range;
    all = {std::min(all.min, range.min), std::max(all.max, range.max)};
  }
  return all;
}

// For each output o, the range of w[o, ...] * factor[o]; an undefined factor is 1.
std::vector<Range> ranges(const Tensor& w, const Tensor& factor) {
  const int64_t outputs = w.dim(0);
  std::vector<float> min(static_cast<size_t>(outputs));
  std::vector<float> max(static_cast<size_t>(outputs));
  const Floats w_floats = w.floats();
  kernels::min_max_channels_f32(
      w.elements(), outputs, w.elements() / outputs, w_floats, min.data(), max.data());
  std::vector<Range> result;
  result.reserve(min.size());
  for (size_t o = 0; o < min.size(); ++o)
    result.push_back(scaled({min[o], max[o]}, factor, static_cast<int64_t>(o)));
  return result;
}

// For each output o, [-m, m], where m is the mean of |w[o, ...] * factor[o]|; over all outputs
// unless per_channel.   docs/quantization.md (27)
std::vector<Range> mean_magnitudes(const Tensor& w, const Tensor& factor, bool per_channel) {
  const Floats floats = w.floats();
  const float* const values = floats.data();
  const int64_t inner = w.elements() / w.dim(0);
  const int64_t channels = per_channel ? w.dim(0) : 1;
  const int64_t length = w.elements() / channels;
  std::vector<Range> result(static_cast<size_t>(channels));
  parallel_for(
      channels, kernels::row_grain(length, kernels::kRereadGrain), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          double sum = 0.0;
          for (int64_t i = c * length; i < (c + 1) * length; ++i) {
            const float f = factor.defined() ? factor.data()[i / inner] : 1.0f;
            sum += std::abs(static_cast<double>(values[i] * f));
          }
          const auto mean = static_cast<float>(sum / static_cast<double>(length));
          result[static_cast<size_t>(c)] = {-mean, mean};
        }
      });
  return result;
}

}  // namespace

std::string fault(const WeightConfig& config) {
  const bool learned = config.estimator == Estimator::kLearned;
  if (config.bits < kLeastBits || config.bits > kMostBits) {
    return "weights have " + std::to_string(kLeastBits) + " to " + std::to_string(kMostBits) +
           " bits, got " + std::to_string(config.bits);
  }
  if (std::string wrong = FewerBits::fault(config.first_bits, config.bits); !wrong.empty())
    return wrong;
  if (config.bits == 1 && !config.narrow)
    return "weights of 1 bit are -1 and +1: set narrow = true";
  if (config.bits == 1 && config.scheme == QScheme::kAffine)
    return "weights of 1 bit are -1 and +1, and have no zero point: they are symmetric";
  if (is_learned(config.estimator) && !learned)
    return "weights have no offset and no range of activations to learn: set a learned scale";
  if (learned && config.scheme == QScheme::kAffine)
    return "a learned scale needs symmetric weights";
  if (!config.function) return "";
  const std::string name(kind(*config.function));
  if (config.scheme == QScheme::kAffine)
    return "the weight function " + name + " needs symmetric weights";
  if (learned)
    return "the weight function " + name + " leaves no scale to learn: set only one of the two";
  if (std::string wrong =
          fault(*config.function, {config.bits, true, config.narrow}, config.per_channel);
      !wrong.empty() || config.first_bits == 0)
    return wrong;
  const std::string wrong =
      fault(*config.function, {config.first_bits, true, config.narrow}, config.per_channel);
  return wrong.empty() ? "" : "the weight function " + name + " fits no first_bits: " + wrong;
}

WeightQuantizer::WeightQuantizer(const WeightConfig& config,
                                 const Weights& own,
                                 std::shared_ptr<Folding> folding)
    : config_(config), own_(own), folding_(std::move(folding)) {
  if (const std::string wrong = fault(config); !wrong.empty())
    throw QuantError("WeightQuantizer", wrong);
  const bool learned = config.estimator == Estimator::kLearned;
  if (config.first_bits != 0) bits_.emplace(config.first_bits, config.bits);
  if (own.weight.elements() == 0)
    throw ShapeError("WeightQuantizer", "the weight ", own.weight.shape(), " has no element");
  const int64_t channels = config.per_channel ? own.weight.dim(0) : 1;
  scale_ = Tensor::full({channels}, 1.0f);
  if (learned) start_scale(own);
  scale_ = learned ? add_parameter("scale", scale_) : add_buffer("scale", scale_);
  const QType type = empty_params().type;  // with the most bits
  zero_point_ = add_buffer("zero_point",
                           config.scheme == QScheme::kSymmetric
                               ? IntegerBuffer({channels}, {.least = 0, .most = 0})
                               : zero_points(channels, type));
  given_ = add_buffer("given", IntegerBuffer({1}, {.least = 0, .most = 1}));
  add_buffer("phase", saved_phase());
  const QType last{config.bits, type.is_signed, type.narrow};
  for (NamedState& entry : type_constants(last, learned)) add_buffer(std::move(entry));
  if (bits_) add_buffer("current_bits", bits_->state());
  if (config.function) {
    const auto kind = static_cast<int64_t>(config.function->index());
    add_buffer(NamedState("function", IntegerBuffer({1}, {.value = kind}), true));
    const auto add = [&](const char* name, float option) {
      add_buffer(NamedState(std::string("function.") + name, Tensor::full({1}, option), true));
    };
    std::visit([&](const auto& options) { options.describe(options, add); }, *config.function);
  }
  if (config.power_of_two) add_buffer(power_of_two_constant());
}

void WeightQuantizer::start_scale(const Weights& own) {
  const NoGrad no_grad;
  const Tensor weight = folding_ ? fold_batch_norm(own, *folding_).weight : own.weight;
  const int64_t channels = scale_.elements();
  const int64_t inner = weight.elements() / channels;
  const double qmax = empty_params().type.qmax();
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0.0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i)
      sum += std::abs(static_cast<double>(weight.data()[i]));
    const double factor = empty_params().type.is_sign() ? 1.0 : 2.0;  // (27)
    const double start = factor * sum / static_cast<double>(inner) / std::sqrt(qmax);
    scale_.mutable_data()[c] = learned_scale(static_cast<float>(start));
  }
}

std::vector<NamedState> WeightQuantizer::pass_state() const {
  std::vector<NamedState> entries = Module::pass_state();
  entries.insert(entries.end(), own_parameters().begin(), own_parameters().end());
  return entries;
}

void WeightQuantizer::lower_bits(int64_t by) { prepared_lower_bits(by)(); }

std::function<void()> WeightQuantizer::prepared_lower_bits(int64_t by) {
  if (!lowers_bits()) return [] {};
  const int fewer = bits_->lowered(by, is_saved_frozen(), place(type()));
  if (fewer == bits()) return [] {};
  return [this, fewer] {
    const DefaultRounding rounding;
    const QType before = empty_params().type;
    bits_->set(fewer);
    if (config_.estimator != Estimator::kLearned) return;
    const double factor = learned_scale_factor(before, empty_params().type);
    for (int64_t c = 0; c < scale_.elements(); ++c)
      scale_.mutable_data()[c] = static_cast<float>(static_cast<double>(scale_.data()[c]) * factor);
  };
}

void WeightQuantizer::set_params(const QParams& params) {
  const std::string place = this->place(type());
  const QParams own = empty_params();
  check_given(params, own.type, own.axis, scale_.elements(), place);
  const bool centred = std::all_of(
      params.zero_point.begin(), params.zero_point.end(), [](int32_t zero) { return zero == 0; });
  if (config_.scheme == QScheme::kSymmetric && !centred) {
    throw QuantError(place,
                     "symmetric weights have zero point 0, got ",
                     params,
                     ": affine weights exist in simulation only (WeightConfig::scheme)");
  }
  zero_point_.set(std::vector<int64_t>(params.zero_point.begin(), params.zero_point.end()));
  std::copy(params.scale.begin(), params.scale.end(), scale_.mutable_data());
  given_.fill(1);
}

/// Parameters with a type and an axis, but no scales and zero points yet.
QParams WeightQuantizer::empty_params() const {
  const bool symmetric = config_.scheme == QScheme::kSymmetric;
  return {{bits(), symmetric, config_.narrow && symmetric}, config_.per_channel ? 0 : -1, {}, {}};
}

QParams WeightQuantizer::given_params() const {
  QParams params = empty_params();
  for (int64_t c = 0; c < scale_.elements(); ++c) {
    params.scale.push_back(scale_.data()[c]);
    params.zero_point.push_back(static_cast<int32_t>(zero_point_.values()[static_cast<size_t>(c)]));
  }
  validate(params, place(type()));
  return params;
}

ScaleZero WeightQuantizer::finished(const ScaleZero& chosen) const {
  return config_.power_of_two ? with_power_of_two(chosen, empty_params().type, config_.scheme)
                              : chosen;
}

QParams WeightQuantizer::params() const {
  const DefaultRounding rounding;
  const NoGrad no_grad;
  const ChooseParams choose = chooser(Tensor(), Tensor());
  const Tensor weight = is_given() ? own_.weight : computed_weight(own_.weight);
  if (!folding_) return params_for(weight, Tensor(), choose);
  return params_for(weight, fold_bias(own_, *folding_).factor, choose);
}

Tensor WeightQuantizer::computed_weight(const Tensor& own) const {
  return config_.function ? quant::apply(*config_.function, own, config_.per_channel) : own;
}

ChooseParams WeightQuantizer::chooser(const Tensor& bias, const Tensor& x) const {
  const float scale_x =
      x.defined() && x.kind() == ValueKind::kCodes ? x.codes()->params.scale[0] : 0.0f;
  const float* const biases = bias.defined() && scale_x > 0.0f ? bias.data() : nullptr;
  const int64_t outputs = biases == nullptr ? 0 : config_.per_channel ? 1 : bias.elements();
  const float* const learned = config_.estimator == Estimator::kLearned ? scale_.data() : nullptr;
  return [this,
          config = config_,
          type = empty_params().type,
          place = place(this->type()),
          scale_x,
          biases,
          outputs,
          learned](int64_t c, const Range& range) -> ScaleZero {
    if (config.scheme == QScheme::kAffine)
      return finished(choose_params(range, type, QScheme::kAffine, place));
    float largest = 0.0f;  // |bias| of the outputs that share this scale
    for (int64_t o = c; o < c + outputs; ++o) {
      largest =
          std::isfinite(biases[o]) ? std::max(largest, std::abs(biases[o])) : std::abs(biases[o]);
    }
    const float max_abs = std::max(-range.min, range.max);
    if (!std::isfinite(max_abs) || !std::isfinite(largest)) {
      throw DataError(place,
                      "the weights or the bias hold a NaN or an infinity: max|w| ",
                      max_abs,
                      ", max|bias| ",
                      largest,
                      kDivergence);
    }
    if (learned == nullptr) {
      return finished(
          {weight_scale(max_abs, largest, scale_x > 0.0f ? scale_x : 1.0f, type, place), 0});
    }
    float scale = learned_scale(learned[c]);
    const double fits = sum_scale(scale_x, scale) * static_cast<double>(kLargestBias);
    if (biases != nullptr && !(static_cast<double>(largest) <= fits))  // also if it is NaN
      scale = std::max(scale, weight_scale(0.0f, largest, scale_x, type, place));
    return finished({scale, 0});
  };
}

QParams WeightQuantizer::params_for(const Tensor& weight,
                                    const Tensor& factor,
                                    const ChooseParams& choose) const {
  if (is_given()) return given_params();
  QParams params = empty_params();
  std::vector<Range> extremes = params.type.is_sign()
                                    ? mean_magnitudes(weight, factor, config_.per_channel)
                                    : ranges(weight, factor);
  if (!config_.per_channel) extremes = {joined(extremes)};
  for (size_t c = 0; c < extremes.size(); ++c) {
    const ScaleZero chosen = choose(static_cast<int64_t>(c), extremes[c]);
    params.scale.push_back(chosen.scale);
    params.zero_point.push_back(chosen.zero_point);
  }
  return params;
}

Weights WeightQuantizer::apply(const Weights& own, const Tensor& x) {
  Weights weights = own;
  weights.weight = computed_weight(own.weight);
  Tensor factor;
  if (folding_ && !in_float()) {
    FoldedBias folded = fold_bias(own, *folding_);
    weights.bias = std::move(folded.bias);
    factor = std::move(folded.factor);
  }
  const bool learns =
      config_.estimator == Estimator::kLearned && phase() == Phase::kTraining && !is_given();
  if (learns && training() && !in_float() && !DryRun::on()) make_positive(scale_);
  if (folding_) weights.rescaling = std::make_shared<const Rescaling>(Rescaling{factor, own.bias});
  if (in_float()) return weights;
  const ChooseParams choose = chooser(weights.bias, x);
  const bool symmetric = config_.scheme == QScheme::kSymmetric;
  // A scale that is chosen from the largest weight clamps no weight, so every gradient passes. So
  // it does through signs.
  const bool holds_all =
      empty_params().type.is_sign() ||
      (symmetric && config_.narrow && config_.estimator == Estimator::kClamped && !is_given());
  const FakeQuantizeOptions options{.storage = symmetric ? CodeStorage::kS8 : CodeStorage::kU8,
                                    .clamped = config_.estimator != Estimator::kPlain && !holds_all,
                                    .codes = simulation() == Simulation::kInteger};
  if (learns) {
    const Tensor folded = folding_ ? fold_weight(weights.weight, factor) : weights.weight;
    const QParams params = params_for(weights.weight, factor, choose);
    weights.weight = fake_quantize_learned(folded, scale_, params, options);
  } else if (config_.per_channel && !options.clamped && !is_given() &&
             !empty_params().type.is_sign()) {
    // Without a mask of the clamped weights, each channel is quantized as soon as its range is
    // known.
    weights.weight = fake_quantize_chosen(
        weights.weight,
        factor,
        empty_params().type,
        [&](int64_t c, const Range& range) { return choose(c, scaled(range, factor, c)); },
        options);
  } else {
    const QParams params = params_for(weights.weight, factor, choose);
    weights.weight = folding_ ? fake_quantize_scaled(weights.weight, factor, params, options)
                              : fake_quantize(weights.weight, params, options);
  }
  if (folding_ && folding_->uses_batch_statistics()) weights.bias = Tensor();
  return weights;
}

}  // namespace quantrain::quant
