#include "quant/analysis/findings.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "framework/core/text_table.hpp"
#include "quant/analysis/finder.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/analysis/target_loss.hpp"

namespace quantrain::quant {
namespace {

// Values that lie within fewer codes have less than 4 bits of precision, although 8 are paid for.
constexpr double kFewCodes = 16.0;
// The range without spikes is at least a bit narrower.
constexpr double kSpikes = 2.0;
// If more of the input saturates, it is not a few spikes: the data have another scale.
constexpr double kMostSaturate = 0.1;
// A clipped value is cut to less than two thirds of itself.
constexpr double kCutOff = 1.5;
// The cut-off values' error is above 1 % of the signal's power (20 dB), which 8 bits never lose by
// rounding.
constexpr double kCutOffNoise = 0.01;
// Operands within two bits of each other are common: sums of different layers.
constexpr double kOperandBits = 3.0;
// An easy task leaves more than half of a wide layer unused.
constexpr double kMostChannels = 0.75;
constexpr int64_t kFewestValues = 8;  // of a channel, before it is called constant
// The median channel keeps a sixteenth of the codes: it loses 4 of its bits.
constexpr double kOutlier = 16.0;

}  // namespace

std::string range_text(const Range& range) {
  return '[' + number_text(range.min) + ", " + number_text(range.max) + ']';
}
std::string braced(const Range& range) {
  return '{' + number_text(range.min) + "f, " + number_text(range.max) + "f}";
}
std::string settings_of(const LayerDiagnosis& layer) {
  return "config.layers[\"" + layer.name + "\"]";
}

std::vector<Finding> Finder::run() {
  for (const LayerDiagnosis& layer : diagnosis_.layers) {
    if (layer.weights) look_at_weights(layer, *layer.weights);
    if (layer.floats.values == 0) continue;
    if (layer.is_input) {
      look_at_input(layer);
    } else {
      if (layer.params && !layer.slot.empty()) look_at_range(layer);
      if (!has_finding(layer)) look_at_channels(layer);
    }
  }
  look_at_bits();
  look_at_outputs();
  for (Finding& finding : found_) {
    const double own = diagnosis_.layer(finding.layer).output_error;
    finding.output_error = std::max(finding.output_error, own);
  }
  look_at_targets();
  // An error as large as the spread loses the output, and what is lost by several comes first
  // where it begins: findings are made in the order of the network.
  std::stable_sort(found_.begin(), found_.end(), [](const Finding& a, const Finding& b) {
    return std::min(a.output_error, 1.0) > std::min(b.output_error, 1.0);
  });
  return std::move(found_);
}

void Finder::add(FindingKind kind,
                 const LayerDiagnosis& layer,
                 double measure,
                 double bits_lost,
                 std::string cause,
                 std::string advice) {
  found_.push_back({.kind = kind,
                    .layer = layer.name,
                    .number = measure,
                    .bits_lost = bits_lost,
                    .cause = std::move(cause),
                    .advice = std::move(advice)});
}

bool Finder::has_finding(const LayerDiagnosis& layer) const {
  return std::any_of(found_.begin(), found_.end(), [&](const Finding& finding) {
    return finding.layer == layer.name;
  });
}

void Finder::look_at_input(const LayerDiagnosis& layer) {
  const ValueDistribution& floats = layer.floats;
  const auto codes = static_cast<double>(layer.codes);
  const std::string declared = range_text(layer.params->float_range());
  if (layer.saturated_encoding > kMostSaturate) {
    return add(FindingKind::kInputNormalization,
               layer,
               layer.saturated_encoding,
               std::log2(codes) * layer.saturated_encoding,
               percent_text(layer.saturated_encoding) +
                   " of the values saturated when they were encoded, and became a limit of the "
                   "range " +
                   declared + ": the network never sees what they were",
               "encode the raw values again, normalized as for training, or with "
               "percentile_range(rows, features) as their range, and train for it");
  }
  if (layer.saturated() > kMostSaturate) {
    const Range covered = layer.params->float_range();
    const double ratio = (static_cast<double>(floats.range.max) - floats.range.min) /
                         (static_cast<double>(covered.max) - covered.min);
    return add(FindingKind::kInputNormalization,
               layer,
               layer.saturated(),
               std::log2(codes) * layer.saturated(),
               percent_text(layer.saturated()) + " of the values saturate: they reach " +
                   range_text(floats.range) + ", the declared range is " + declared,
               "normalize the data as for training: divide them by " + number_text(ratio) +
                   ", or declare their range, QConfig::input_range = Range" + braced(floats.range) +
                   ", and train for it");
  }
  if (look_at_clipped(layer)) return;
  if (look_at_cut_off(layer, "Range" + braced(floats.range) + " as the input's range")) return;
  if (floats.range.max == floats.range.min) return;
  if (uses_few_codes(layer)) {  // the range was declared for other data
    return add(FindingKind::kInputNormalization,
               layer,
               layer.codes_range / codes,
               std::log2(codes / layer.codes_range),
               "all values lie within " + number_text(layer.codes_range) + " of " +
                   number_text(codes) + " codes: they reach " + range_text(floats.range) +
                   ", the declared range is " + declared,
               "declare the data's own range: Dataset::from_floats(shape, values, labels, "
               "classes, Range" +
                   braced(floats.range) + ")");
  }
  if (layer.codes_central < kFewCodes && layer.codes_range > kSpikes * layer.codes_usual) {
    return add(FindingKind::kInputSpikes,
               layer,
               layer.codes_central,
               std::log2(layer.codes_range / layer.codes_usual),
               "99 % of the values lie in " + range_text(floats.central) + ", on " +
                   number_text(layer.codes_central) + " of " + number_text(codes) +
                   " codes, because a few reach " + range_text(floats.range),
               "let only spikes saturate: features = fit_percentiles(rows, columns), range = "
               "percentile_range(rows, features), Dataset::from_floats(shape, rows, labels, "
               "classes, range, features, Outside::kSaturate), and train. For the network as it "
               "is, keep its features and use Range" +
                   braced(layer.usual));
  }
}

bool Finder::look_at_clipped(const LayerDiagnosis& layer) {
  const OutputDiagnosis* const output =
      layer.saturated_encoding > 0.0 ? clipped_output(diagnosis_) : nullptr;
  if (output == nullptr) return false;
  const ClippedRows& clipped = *output->clipped_rows;
  add(FindingKind::kRareCutOff,
      layer,
      layer.saturated_encoding,
      0.0,
      percent_text(layer.saturated_encoding) +
          " of the values saturated when they were encoded. On the rows that hold such values (" +
          std::to_string(clipped.rows) + "), " + output->name + " has an error to the target of " +
          number_text(clipped.rmse_float) + " even in float, on the others of " +
          number_text(clipped.rmse_float_others),
      "encode the raw values again with a range that holds these rows, such as "
      "feature_range(rows, features); if it leaves the usual values too few codes, declare the "
      "column twice, with a narrow and a wide scale. Then train with these rows");
  found_.back().output_error =
      std::min(1.0, clipped.rmse_float / output->largest_targets->distance);
  return true;
}

bool Finder::look_at_cut_off(const LayerDiagnosis& layer, const std::string& advice) {
  const ValueDistribution& floats = layer.floats;
  const Range covered = layer.params->float_range();
  const double noise = layer.range_rmse * layer.range_rmse * layer.saturation_share;
  const bool cut = floats.range.max > kCutOff * static_cast<double>(covered.max) ||
                   floats.range.min < kCutOff * static_cast<double>(covered.min);
  if (!cut || noise < kCutOffNoise * floats.rms * floats.rms) return false;
  // What rounding would cost if the range held all values.
  const double step =
      (std::max<double>(floats.range.max, 0.0) - std::min<double>(floats.range.min, 0.0)) /
      static_cast<double>(layer.codes - 1);
  add(FindingKind::kRareCutOff,
      layer,
      layer.saturated(),
      std::max(0.0, 0.5 * std::log2(noise * 12.0 / (step * step))),
      percent_text(layer.saturated()) + " of the values saturate and make " +
          percent_text(layer.saturation_share) + " of the error: they reach " +
          range_text(floats.range) + ", the codes " + range_text(covered),
      advice);
  return true;
}

void Finder::look_at_range(const LayerDiagnosis& layer) {
  const ValueDistribution& floats = layer.floats;
  const Range covered = layer.params->float_range();
  const auto codes = static_cast<double>(layer.codes);
  if (layer.learned && floats.rms > 0.0) {
    const double top =
        std::max(-static_cast<double>(floats.range.min), static_cast<double>(floats.range.max));
    const double ratio =
        std::max(-static_cast<double>(covered.min), static_cast<double>(covered.max)) / top;
    if (ratio < kSmallestScaleRatio || ratio > kLargestScaleRatio)
      return add_stuck(layer, "output", ratio, "activation");
  }
  if (look_at_cut_off(layer,
                      settings_of(layer) +
                          ".activation.observer = MinMaxOptions{}, prepare and calibrate with "
                          "data that hold these values"))
    return;
  if (layer.operation == "concat") return look_at_operands(layer);
  if (has_finding(layer) || floats.range.max == floats.range.min) return;
  const bool far = floats.range.min > 0.0f || floats.range.max < 0.0f;
  if (far && layer.codes_range < std::min(kFewCodes, codes / 4.0)) {
    return add(FindingKind::kFarRange,
               layer,
               layer.codes_range,
               std::log2(codes / layer.codes_range),
               "all values lie in " + range_text(floats.range) + ", on " +
                   number_text(layer.codes_range) + " of " + number_text(codes) +
                   " codes, because a range contains 0",
               "subtract the offset before the layer's output is quantized, in its bias, and add "
               "its effect to the next layer's bias: treat() does both, a BatchNorm after the "
               "layer learns it");
  }
  if (layer.largest_to_median > kOutlier && layer.is_output == false) {
    add(FindingKind::kOutlierChannel,
        layer,
        layer.largest_to_median,
        std::log2(layer.largest_to_median),
        "channel " + std::to_string(layer.largest_channel) + " is " +
            number_text(layer.largest_to_median) +
            " times as large as the median channel, and all share one scale",
        "divide the channel's weights and bias by that factor and multiply the next layer's "
        "weights by it: treat() does it, a BatchNorm after the layer learns it");
  }
}

void Finder::look_at_operands(const LayerDiagnosis& layer) {
  const auto scale = static_cast<double>(layer.params->scale[0]);
  const LayerDiagnosis* worst = nullptr;
  double lost = 0.0;
  for (const int id : layer.reads) {
    const LayerDiagnosis& operand = diagnosis_.layers[static_cast<size_t>(id)];
    if (operand.floats.values == 0 || !operand.params) continue;
    const double bits = std::log2(scale / static_cast<double>(operand.params->scale[0]));
    if (bits > lost) {
      lost = bits;
      worst = &operand;
    }
  }
  if (worst == nullptr || lost < kOperandBits) return;
  const double codes = 1.0 + (static_cast<double>(worst->floats.range.max) -
                              static_cast<double>(worst->floats.range.min)) /
                                 scale;
  add(FindingKind::kUnequalOperands,
      layer,
      codes,
      lost,
      "the operand \"" + worst->name + "\" keeps " + number_text(codes) + " codes and loses " +
          number_text(lost) + " bits: its values reach " + range_text(worst->floats.range) +
          ", all operands " + range_text(layer.floats.range),
      "scale the operands to equal ranges: multiply the weights and bias of the layer that "
      "computes \"" +
          worst->name + "\" by " + number_text(std::exp2(lost)) +
          " and divide the next layer's weights by it (treat() does it), or replace the "
          "concatenation by the Add of two layers");
  found_.back().operand = worst->name;
}

void Finder::add_stuck(const LayerDiagnosis& layer,
                       const std::string& what,
                       double ratio,
                       const std::string& setting) {
  add(FindingKind::kStuckScale,
      layer,
      ratio,
      std::abs(std::log2(ratio)),
      "the learned scale of the " + what + " covers " + number_text(ratio) +
          " times what it quantizes: it no longer learns",
      "let the values choose the scale: " + settings_of(layer) + '.' + setting +
          ".estimator = Estimator::kClamped, or start again with a lower learning rate");
}

void Finder::look_at_weights(const LayerDiagnosis& layer, const WeightsDiagnosis& weights) {
  if (weights.stuck_scales > 0)
    return add_stuck(layer, "weights", weights.scale_to_weights, "weight");
  if (!weights.per_channel && weights.largest_to_median > kOutlier) {
    add(FindingKind::kOutlierWeights,
        layer,
        weights.largest_to_median,
        std::log2(weights.largest_to_median),
        "the weights of channel " + std::to_string(weights.largest_channel) + " are " +
            number_text(weights.largest_to_median) +
            " times as large as those of the median channel, which has " +
            number_text(weights.median_codes) + " codes",
        settings_of(layer) + ".weight.per_channel = true");
  }
}

void Finder::look_at_channels(const LayerDiagnosis& layer) {
  const auto channels = static_cast<double>(layer.channels);
  if (layer.slot.empty() && !layer.weights) return;
  if (layer.floats.values < kFewestValues * layer.channels) return;
  if (static_cast<double>(layer.constant) <= kMostChannels * channels) return;
  const bool in_float = 2 * layer.constant_float > layer.constant;
  add(FindingKind::kDeadLayer,
      layer,
      static_cast<double>(layer.constant),
      std::log2(static_cast<double>(std::max<int64_t>(layer.codes, 2))) *
          static_cast<double>(layer.constant) / channels,
      std::to_string(layer.constant) + " of " + std::to_string(layer.channels) +
          " channels never change" +
          (in_float ? ", in float neither" : ": quantization makes them constant"),
      in_float ? "raise the layer's bias until its channels pass values (treat() does it), then "
                 "train with a lower learning rate"
               : settings_of(layer) +
                     ".activation.observer = PercentileOptions{}, so that rare values do not "
                     "choose the range");
}

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::kInputSpikes: return "input spikes";
    case FindingKind::kInputNormalization: return "input normalization";
    case FindingKind::kRareCutOff: return "rare values cut off";
    case FindingKind::kFarRange: return "far range";
    case FindingKind::kUnequalOperands: return "unequal operands";
    case FindingKind::kUnequalOutputs: return "unequal outputs";
    case FindingKind::kDeadLayer: return "dead layer";
    case FindingKind::kOutlierWeights: return "outlier weights";
    case FindingKind::kOutlierChannel: return "outlier channel";
    case FindingKind::kStuckScale: return "stuck scale";
    case FindingKind::kTooFewBits: return "too few bits";
    case FindingKind::kTargetError: return "error to target";
  }
  return "";
}

std::string loss_text(const Finding& finding, const Diagnosis& diagnosis) {
  std::string text =
      finding.bits_lost > 0.0 ? decimals(finding.bits_lost, 1) + " bits lost, " : std::string();
  const std::string part = percent_text(finding.output_error);
  const bool targets = finding.output_error > diagnosis.layer(finding.layer).output_error;
  return text + (targets ? part + " of the targets' spread or recall"
                         : "alone " + part + " of an output's spread");
}

std::vector<Finding> find(const Diagnosis& diagnosis) { return Finder(diagnosis).run(); }

}  // namespace quantrain::quant
