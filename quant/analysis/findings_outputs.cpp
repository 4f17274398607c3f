#include <algorithm>
#include <cmath>
#include <string>

#include "quant/analysis/finder.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/analysis/target_loss.hpp"

// What a Finder finds in the outputs, and in what single layers change there.
namespace quantrain::quant {
namespace {

// A layer whose values reach a tenth beyond its codes may be what loses a target.
constexpr double kReachesBeyond = 1.1;
// One output loses three bits more than the best one, and more than a twentieth of its spread.
constexpr double kUnequalOutputs = 8.0;
constexpr double kLargeError = 0.05;
// One layer makes more noise than all others together, and the output has less than 25 dB (what 4
// bits give); networks of 8 bits have 30 to 45 dB.
constexpr double kDominates = 0.5;
constexpr double kLowSnr = 25.0;

int weight_bits(const LayerDiagnosis& layer) {
  return layer.weights ? layer.weights->type.bits : 8;
}
int output_bits(const LayerDiagnosis& layer) {
  return layer.params && !layer.slot.empty() ? layer.params->type.bits : 8;
}
int fewest_bits(const LayerDiagnosis& layer) {
  return std::min(weight_bits(layer), output_bits(layer));
}
std::string more_bits(const LayerDiagnosis& layer) {
  return weight_bits(layer) <= output_bits(layer) ? ".weight.bits = " : ".activation.bits = ";
}

}  // namespace

void Finder::look_at_bits() {
  double snr = INFINITY;
  for (const LayerDiagnosis& layer : diagnosis_.layers) {
    if (layer.is_output) snr = std::min(snr, layer.snr_accumulated);
  }
  if (snr >= kLowSnr) return;
  for (const LayerDiagnosis& layer : diagnosis_.layers) {
    if (layer.noise_share <= kDominates || layer.is_input || has_finding(layer)) continue;
    const int bits = fewest_bits(layer);
    if (bits >= 8) continue;
    const bool weights = weight_bits(layer) <= output_bits(layer);
    add(FindingKind::kTooFewBits,
        layer,
        layer.noise_share,
        0.5 * std::log2(layer.noise_share / std::max(1e-6, 1.0 - layer.noise_share)),
        "with " + std::to_string(bits) + " bits for its " + (weights ? "weights" : "output") +
            ", this layer alone makes " + percent_text(layer.noise_share) +
            " of the noise; the output has " + number_text(snr) + " dB",
        settings_of(layer) + more_bits(layer) + std::to_string(std::min(8, 2 * bits)));
  }
}

void Finder::look_at_outputs() {
  if (diagnosis_.classes || diagnosis_.outputs.size() < 2) return;
  const auto by_error = [](const OutputDiagnosis& a, const OutputDiagnosis& b) {
    return a.relative < b.relative;
  };
  const auto [best, worst] =
      std::minmax_element(diagnosis_.outputs.begin(), diagnosis_.outputs.end(), by_error);
  if (worst->spread == 0.0 || worst->relative < kLargeError) return;
  const double ratio = worst->relative / std::max(best->relative, 1e-9);
  if (ratio < kUnequalOutputs) return;
  const auto layer = std::find_if(
      diagnosis_.layers.begin(), diagnosis_.layers.end(), [](const LayerDiagnosis& candidate) {
        return candidate.is_output;
      });
  add(FindingKind::kUnequalOutputs,
      *layer,
      worst->relative,
      std::log2(ratio),
      worst->name + " has an error of " + percent_text(worst->relative) + " of its spread " +
          number_text(worst->spread) + ", " + best->name + " of " + percent_text(best->relative) +
          " of " + number_text(best->spread) +
          (layer->params ? ": they share a scale"
                         : ": what the layers before round is little for one and much for the "
                           "other"),
      "train on targets divided by their spread (fit_mean_std), and multiply the results by it; "
      "treat() does it for a trained network");
}

std::pair<const LayerDiagnosis*, double> Finder::most_cut_off() const {
  std::pair<const LayerDiagnosis*, double> most{nullptr, kReachesBeyond};
  for (const LayerDiagnosis& layer : diagnosis_.layers) {
    if (layer.floats.values == 0 || !layer.params) continue;
    if (layer.slot.empty() && !layer.is_input) continue;
    const Range codes = layer.params->float_range();
    const double reach = static_cast<double>(std::max(layer.floats.range.max, codes.max)) -
                         static_cast<double>(std::min(layer.floats.range.min, codes.min));
    const double ratio = reach / (static_cast<double>(codes.max) - static_cast<double>(codes.min));
    if (ratio > most.second) most = {&layer, ratio};
  }
  return most;
}

const LayerDiagnosis& Finder::noisiest() const {
  // The error of an input that carries codes is what rounding cost before the float pass, too.
  const auto less = [](const LayerDiagnosis& a, const LayerDiagnosis& b) {
    return std::pair(!a.is_input, a.output_error) < std::pair(!b.is_input, b.output_error);
  };
  return *std::max_element(diagnosis_.layers.begin(), diagnosis_.layers.end(), less);
}

void Finder::look_at_targets() {
  const std::optional<TargetLoss> loss = target_loss(diagnosis_);
  if (!loss) return;
  const auto explains = [&](const Finding& f) { return f.output_error >= 0.5 * loss->severity; };
  if (std::any_of(found_.begin(), found_.end(), explains)) return;
  const auto [cut, ratio] = most_cut_off();
  const LayerDiagnosis& layer = cut != nullptr ? *cut : noisiest();
  for (Finding& finding : found_) {
    if (finding.layer != layer.name) continue;
    finding.output_error = loss->severity;
    return;
  }
  if (cut != nullptr) {
    const std::string range = range_text(layer.floats.range);
    add(FindingKind::kRareCutOff,
        layer,
        loss->number,
        std::log2(ratio),
        loss->text + ": values of this layer reach " + range + ", its codes " +
            range_text(layer.params->float_range()),
        layer.is_input
            ? "declare a range that holds these rows: QConfig::input_range = Range" +
                  braced(layer.floats.range)
            : "calibrate with data that hold these rows: calibrate(net, DataLoader{..}); "
              "treat() does it. If an observer leaves them out, " +
                  settings_of(layer) + ".activation.observer = MinMaxOptions{}");
  } else {
    const int bits = fewest_bits(layer);
    const bool few = !layer.is_input && uses_few_codes(layer);
    add(FindingKind::kTargetError,
        layer,
        loss->number,
        0.0,
        loss->text +
            (few ? ": all values of this layer lie within " + number_text(layer.codes_range) +
                       " of its " + std::to_string(layer.codes) + " codes"
                 : ", although no value saturates: the rounding of this layer changes the "
                   "outputs most"),
        few ? "calibrate with data like these: calibrate(net, DataLoader{..}); treat() does it"
        : bits < 8 ? settings_of(layer) + more_bits(layer) + std::to_string(std::min(8, 2 * bits))
                   : "train with prepare_qat, so that the network adapts to the rounding");
  }
  found_.back().output_error = loss->severity;
}

}  // namespace quantrain::quant
