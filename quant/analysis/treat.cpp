#include "quant/analysis/treat.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/core/error.hpp"
#include "layers/record_graph.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/methods/rescale.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

// Channels up to this many times the median keep enough codes.
constexpr float kEqualEnough = 4.0f;

/// Plain floats, divided by a number and clipped to a range.
class Changed : public BatchSource {
 public:
  Changed(std::shared_ptr<const BatchSource> source, float divisor, Range range)
      : source_(std::move(source)), divisor_(divisor), range_(range) {}

  std::optional<int64_t> samples() const override { return source_->samples(); }
  bool any_order() const override { return source_->any_order(); }
  Reader read(const Pass& pass) const override {
    return [reader = source_->read(pass), divisor = divisor_, range = range_](
               std::span<const int64_t> indices) {
      Batch batch = reader(indices);
      if (batch.size() == 0) return batch;
      const Floats x = batch.input.floats();
      std::vector<float> values(x.data(), x.data() + x.size());
      for (float& value : values) value = std::clamp(value / divisor, range.min, range.max);
      batch.input = Tensor::from(batch.input.shape(), values);
      return batch;
    };
  }

 private:
  std::shared_ptr<const BatchSource> source_;
  float divisor_;
  Range range_;
};

constexpr float kLargest = std::numeric_limits<float>::max();

bool has_codes(const DataLoader& data) { return input_codes((*data.begin()).input) != nullptr; }

/// One attempt: what is changed before the network is prepared again.
class Attempt {
 public:
  Attempt(Module& net, const DataLoader& data, Treatment& treatment, const Recipe& recipe)
      : net_(net),
        given_(data),
        recipe_(recipe),
        treatment_(treatment),
        finding_(treatment.finding),
        floats_(float_copy(net, recipe, "treat")),
        config_(recipe.config),
        data_(data),
        calibration_(data) {}

  void run(const DiagnoseOptions& options) {
    change();
    if (recipe_.train) recipe_.train(*floats_);
    prepare_ptq(*floats_, (*calibration_.begin()).inputs(), config_);
    calibrate(*floats_, calibration_);
    treatment_.after = diagnose(*floats_, data_, options);
    if (finding_.kind == FindingKind::kUnequalOutputs) {
      for (OutputDiagnosis& output : treatment_.after.outputs) {  // the targets have another unit
        output.target_rmse_float = output.target_rmse_integers = std::nullopt;
        output.largest_targets = std::nullopt;
        output.clipped_rows = std::nullopt;
      }
    }
    treatment_.config = config_;
    treatment_.net = std::move(floats_);
  }

 private:
  const LayerDiagnosis& layer() const { return treatment_.before.layer(finding_.layer); }

  Place place_at(const std::string& layer) const {
    return place_of(net_, wiring_of(net_, (*given_.begin()).inputs()), layer);
  }

  LayerConfig& settings() {
    const std::string type(net_.find(finding_.layer).type());
    const LayerConfig own = config_.of(type, finding_.layer);
    return config_.layers.emplace(finding_.layer, own).first->second;
  }

  void change() {
    switch (finding_.kind) {
      case FindingKind::kInputSpikes: return encode(layer().usual, 1.0f);
      case FindingKind::kInputNormalization: return normalize();
      case FindingKind::kRareCutOff:
        if (layer().is_input) {
          check_not_clipped();
          return encode(layer().floats.range, 1.0f);
        }
        settings().activation.observer = MinMaxOptions{};
        treatment_.done =
            "calibrated with all of these data, with a range that holds all values (MinMaxOptions)";
        return;
      case FindingKind::kFarRange: return shift();
      case FindingKind::kUnequalOperands: return scale_operand();
      case FindingKind::kUnequalOutputs: return scale_outputs();
      case FindingKind::kDeadLayer: return revive();
      case FindingKind::kOutlierWeights:
        settings().weight.per_channel = true;
        treatment_.done = "a scale for each channel of the weights";
        return;
      case FindingKind::kOutlierChannel: return scale_outliers();
      case FindingKind::kStuckScale:
        settings().weight.estimator = Estimator::kClamped;
        settings().activation.estimator = Estimator::kClamped;
        treatment_.done = "scales from the values, not learned";
        return;
      case FindingKind::kTooFewBits: return add_bits();
      case FindingKind::kTargetError:
        if (layer().is_input || !uses_few_codes(layer())) return add_bits();
        treatment_.done = "calibrated with these data";
        return;
    }
  }

  /// Another range for the input's values, divided by a number.
  void encode(Range range, float divisor) {
    if (!has_codes(given_)) {
      const auto changed = [&](Range kept) {
        return DataLoader{std::make_shared<Changed>(given_.source(), divisor, kept),
                          given_.options()};
      };
      data_ = changed({-kLargest, kLargest});
      const Range codes = integer::input_params(range, "treat").float_range();
      calibration_ = changed({std::max(range.min, codes.min), std::min(range.max, codes.max)});
      config_.input_range = range;
    } else if (recipe_.encode != nullptr) {
      data_ = calibration_ = recipe_.encode(range);
      config_.input_range.reset();
      treatment_.encoded_again = true;
    } else {
      throw QuantError("treat",
                       "the data are codes of another range: set Recipe::encode, which encodes the "
                       "raw values for a range");
    }
    treatment_.done = "the input's range is [" + number_text(range.min) + ", " +
                      number_text(range.max) + ']' +
                      (divisor == 1.0f ? "" : ", values divided by " + number_text(divisor));
  }

  void check_not_clipped() const {
    if (layer().saturated_encoding > 0.0) {
      throw QuantError(
          finding_.layer,
          "values saturated when they were encoded, and the codes do not say how large "
          "they were: encode the raw values again");
    }
  }

  void normalize() {
    check_not_clipped();
    if (layer().saturated() == 0.0) return encode(layer().floats.range, 1.0f);
    const Range covered = layer().params->float_range();
    const Range seen = layer().floats.range;
    const float half_step = 0.5f * layer().params->scale[0];
    const auto ratio = [&](float value, float limit) {
      if (value <= half_step) return 0.0f;
      if (limit > 0.0f) return value / limit;
      throw QuantError(finding_.layer,
                       "values reach [",
                       seen.min,
                       ", ",
                       seen.max,
                       "], and the range [",
                       covered.min,
                       ", ",
                       covered.max,
                       "] ends at 0, so no factor brings them into it: declare their range and "
                       "train for it");
    };
    encode(covered, std::max(ratio(seen.max, covered.max), ratio(-seen.min, -covered.min)));
  }

  void shift() {
    std::vector<float> offset;
    for (const Range& range : layer().channel_ranges)
      offset.push_back(0.5f * range.min + 0.5f * range.max);
    shift_channels(*floats_, place_at(finding_.layer), offset);
    treatment_.done = "the middle of each channel moved into the next layer's bias";
  }

  void scale_operand() {
    const Place place = place_at(finding_.operand);
    const auto factor = static_cast<float>(std::exp2(finding_.bits_lost));
    scale_channels(
        *floats_, place, std::vector<float>(static_cast<size_t>(place.channels), factor));
    treatment_.done = "\"" + finding_.operand + "\" multiplied by " + number_text(factor) +
                      ", the weights that read it divided by it";
  }

  void scale_outliers() {
    std::vector<float> largest;
    for (const Range& range : layer().channel_ranges)
      largest.push_back(std::max(-range.min, range.max));
    std::vector<float> sorted = largest;
    std::erase(sorted, 0.0f);
    std::sort(sorted.begin(), sorted.end());
    const float enough = kEqualEnough * sorted[(sorted.size() - 1) / 2];
    std::vector<float> factor;
    for (const float value : largest) factor.push_back(value > enough ? enough / value : 1.0f);
    scale_channels(*floats_, place_at(finding_.layer), factor);
    treatment_.done = "large channels divided, the weights that read them multiplied";
  }

  void scale_outputs() {
    std::vector<float> factor;
    for (const OutputDiagnosis& output : treatment_.before.outputs)
      factor.push_back(output.spread > 0.0 ? static_cast<float>(1.0 / output.spread) : 1.0f);
    const Place place = place_at(finding_.layer);
    if (static_cast<int64_t>(factor.size()) != place.channels)
      throw QuantError(finding_.layer, "gives only some of the network's outputs");
    scale_channels(*floats_, place, factor);
    treatment_.done = "each output divided by its spread: multiply the results by it";
  }

  void revive() {
    const bool in_float = 2 * layer().constant_float > layer().constant;
    if (!in_float) {
      settings().activation.observer = PercentileOptions{};
      treatment_.done = "a range of most values (PercentileOptions)";
      return;
    }
    const Place place = place_at(finding_.layer);
    const Graph graph = record_graph(*floats_, (*data_.begin()).inputs());
    const GraphNode* made = nullptr;
    for (const GraphNode& node : graph.nodes()) {
      if (node.scope() == place.affine) made = &node;
    }
    if (made == nullptr) throw QuantError(finding_.layer, "its values were not found");
    const Floats values = made->output.floats();
    Tensor bias = parameter_of(*floats_, place.affine, "bias");
    float* const own = bias.mutable_data();
    const int64_t rows = made->output.elements() / place.channels;
    for (int64_t c = 0; c < place.channels; ++c) {
      const Range& range = layer().channel_ranges[static_cast<size_t>(c)];
      if (range.min < range.max) continue;
      double sum = 0.0;
      for (int64_t row = 0; row < rows; ++row)
        sum += static_cast<double>(values[row * place.channels + c]);
      own[c] -= static_cast<float>(sum / static_cast<double>(rows));
    }
    treatment_.done = "biases of constant channels raised until half of their values pass";
  }

  void add_bits() {
    LayerConfig& own = settings();
    const bool has_weights = layer().weights.has_value();
    if (own.activation.bits >= 8 && (!has_weights || own.weight.bits >= 8)) {
      throw QuantError(finding_.layer,
                       "has 8 bits already: train with prepare_qat, so that the network adapts to "
                       "the rounding");
    }
    if (has_weights && (layer().slot.empty() || own.weight.bits <= own.activation.bits)) {
      own.weight.bits = std::min(8, 2 * own.weight.bits);
      treatment_.done = "weights of " + std::to_string(own.weight.bits) + " bits";
    } else {
      own.activation.bits = std::min(8, 2 * own.activation.bits);
      treatment_.done = "an output of " + std::to_string(own.activation.bits) + " bits";
    }
  }

  Module& net_;
  const DataLoader& given_;
  const Recipe& recipe_;
  Treatment& treatment_;
  const Finding& finding_;
  std::unique_ptr<Module> floats_;
  QConfig config_;
  DataLoader data_;
  DataLoader calibration_;  // the same, clipped to the range of the input
};

Treatment treated(Module& net,
                  const DataLoader& data,
                  const Finding& finding,
                  const Diagnosis& before,
                  const Recipe& recipe,
                  const DiagnoseOptions& options) {
  Treatment treatment;
  treatment.finding = finding;
  treatment.before = before;
  Attempt(net, data, treatment, recipe).run(options);
  return treatment;
}

}  // namespace

Treatment treat(Module& net,
                const DataLoader& data,
                const Finding& finding,
                const Recipe& recipe,
                const DiagnoseOptions& options) {
  return treated(net, data, finding, diagnose(net, data, options), recipe, options);
}

std::vector<Treatment> treat(Module& net,
                             const DataLoader& data,
                             const Diagnosis& report,
                             const Recipe& recipe,
                             const DiagnoseOptions& options) {
  std::vector<Treatment> all;
  if (!report.findings.empty()) float_copy(net, recipe, "treat");  // a wrong recipe treats nothing
  for (const Finding& finding : report.findings) {
    try {
      all.push_back(treated(net, data, finding, report, recipe, options));
    } catch (const Error& error) {
      Treatment& refused = all.emplace_back();
      refused.finding = finding;
      refused.before = report;
      refused.refusal = error.what();
    }
  }
  return all;
}

}  // namespace quantrain::quant
