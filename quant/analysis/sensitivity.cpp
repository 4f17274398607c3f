#include "quant/analysis/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <set>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_table.hpp"
#include "layers/evaluate.hpp"
#include "layers/record_graph.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/methods/products.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "quant/prepare/survey.hpp"

namespace quantrain::quant {
namespace {

void check_list(const std::vector<int>& bits, const char* which, std::string_view where) {
  for (const int b : bits) {
    const bool possible = b >= kLeastBits && b <= kMostBits;
    if (!possible || std::count(bits.begin(), bits.end(), b) > 1) {
      throw DataError(where,
                      "bits of ",
                      which,
                      " are different numbers from ",
                      kLeastBits,
                      " to ",
                      kMostBits,
                      ", got ",
                      b,
                      possible ? " twice" : "");
    }
  }
}

/// The same bits for all layers.
QConfig with_bits(QConfig config, LayerPart part, int bits) {
  const auto set = [&](LayerConfig& layer) {
    (part == LayerPart::kWeights ? layer.weight.bits : layer.activation.bits) = bits;
  };
  set(config.model);
  for (auto& [type, layer] : config.types) set(layer);
  for (auto& [path, layer] : config.layers) set(layer);
  return config;
}

Phased& part_slot(Module& net, const ChoosablePart& part) {
  if (part.part == LayerPart::kWeights) return weight_quantizer(net, part.slot);
  return output_quantizer(net, part.slot);
}

}  // namespace

std::string_view to_string(LayerPart part) {
  return part == LayerPart::kWeights ? "weights" : "output";
}

bool smaller_is_better(std::string_view metric) {
  for (const std::string_view error : {"cross_entropy", "mae", "mse", "rmse"}) {
    if (metric == error || metric.starts_with(std::string(error) + "_")) return true;
  }
  return metric == kOutputError;
}

void validate(const BitChoices& bits, std::string_view where) {
  if (bits.weights.empty() && bits.outputs.empty())
    throw DataError(where, "there are no bits to choose from: set BitChoices::weights or outputs");
  check_list(bits.weights, "weights", where);
  check_list(bits.outputs, "outputs", where);
}

const LayerSensitivity* Sensitivity::find(std::string_view layer, LayerPart part, int bits) const& {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const LayerSensitivity& row) {
    return row.layer == layer && row.part == part && row.bits == bits;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<ChoosablePart> choosable_parts(Module& floats,
                                           const std::vector<Tensor>& examples,
                                           const QConfig& config) {
  const Graph graph = record_graph(floats, examples);
  const Survey survey(floats, graph, examples, config);
  std::vector<ChoosablePart> parts;
  for (const Site& site : survey.sites()) {
    if (!site.config->quantize) continue;
    const std::string type(site.layer->type());
    if (site.has_weights) parts.push_back({site.path, type, site.path, LayerPart::kWeights});
    if (!site.gives_logits) parts.push_back({site.path, type, site.last_path, LayerPart::kOutput});
  }
  return parts;
}

void check_targets(const DataLoader& data, std::string_view metric, std::string_view where) {
  if (metric == kOutputError) return;
  for (const Batch& batch : data) {
    if (!batch.labels.empty() || !batch.targets.empty()) return;
    throw DataError(where,
                    "the data have neither labels nor targets, which \"",
                    metric,
                    "\" needs: pass data with labels, or use the metric \"",
                    kOutputError,
                    "\", which compares with the float network");
  }
  throw DataError(where, "there is no batch to evaluate with");
}

double output_error(const std::vector<Tensor>& floats, const std::vector<Tensor>& outputs) {
  const DefaultRounding rounding;
  double error = 0.0;
  double spread = 0.0;
  for (size_t k = 0; k < floats.size(); ++k) {
    const Floats a = floats[k].floats();
    const Floats b = outputs[k].floats();
    double mean = 0.0;
    for (int64_t i = 0; i < a.size(); ++i)
      mean += static_cast<double>(a[i]) / static_cast<double>(a.size());
    for (int64_t i = 0; i < a.size(); ++i) {
      const double value = static_cast<double>(a[i]);
      error += (static_cast<double>(b[i]) - value) * (static_cast<double>(b[i]) - value);
      spread += (value - mean) * (value - mean);
    }
  }
  return error == 0.0 ? 0.0 : computed(std::sqrt(error / spread));
}

Sensitivity sensitivity(Module& net,
                        const DataLoader& calibration,
                        const DataLoader& data,
                        const Recipe& recipe,
                        const SensitivityOptions& options) {
  const DefaultRounding rounding;
  validate(options.bits, "sensitivity");
  check_targets(data, options.metric, "sensitivity");
  const bool compares = options.metric == kOutputError;
  const std::vector<Tensor> example = first_inputs(calibration, "sensitivity");
  Sensitivity result{.metric = options.metric};
  std::vector<Tensor> in_float;
  const auto measure = [&](Module& of) {
    if (compares) return output_error(in_float, predict_outputs(of, data));
    return evaluate(of, data, {options.metric}).at(options.metric);
  };
  std::vector<ChoosablePart> parts;
  const auto measure_bits = [&](LayerPart kind, int bits) {
    const std::unique_ptr<Module> copy = float_copy(net, recipe, "sensitivity");
    copy->eval();
    if (parts.empty()) {
      parts = choosable_parts(*copy, example, recipe.config);
      if (compares) in_float = predict_outputs(*copy, data);
      result.in_float = measure(*copy);
    }
    prepare_ptq(*copy, example, with_bits(recipe.config, kind, bits));
    calibrate(*copy, calibration);
    for (const ChoosablePart& part : parts) {
      if (part.part != kind) continue;
      const PartlyDeployedMode alone(*copy, {&part_slot(*copy, part)});
      const double value = measure(*copy);
      const double worse = value - result.in_float;
      result.rows.push_back(
          {part.layer, kind, bits, value, smaller_is_better(options.metric) ? worse : -worse});
    }
  };
  for (const int bits : options.bits.weights) measure_bits(LayerPart::kWeights, bits);
  for (const int bits : options.bits.outputs) measure_bits(LayerPart::kOutput, bits);
  const auto place = [&](const LayerSensitivity& row) {
    return std::find_if(parts.begin(), parts.end(), [&](const ChoosablePart& part) {
      return part.layer == row.layer && part.part == row.part;
    });
  };
  std::stable_sort(result.rows.begin(), result.rows.end(), [&](const auto& a, const auto& b) {
    return place(a) < place(b);
  });
  return result;
}

std::ostream& operator<<(std::ostream& stream, const Sensitivity& sensitivity) {
  std::set<int, std::greater<>> bits;
  for (const LayerSensitivity& row : sensitivity.rows) bits.insert(row.bits);
  TextTable table("ll" + std::string(bits.size(), 'r'));
  std::vector<std::string> head{"layer", "part"};
  for (const int b : bits) head.push_back(std::to_string(b) + " bits");
  table.add(std::move(head));
  for (size_t i = 0; i < sensitivity.rows.size();) {
    const LayerSensitivity& first = sensitivity.rows[i];
    std::vector<std::string> cells{first.layer, std::string(to_string(first.part))};
    for (const int b : bits) {
      const LayerSensitivity* const row = sensitivity.find(first.layer, first.part, b);
      cells.push_back(row == nullptr ? "-" : number_text(row->value));
    }
    table.add(std::move(cells));
    const std::string layer = first.layer;
    const LayerPart part = first.part;
    while (i < sensitivity.rows.size() && sensitivity.rows[i].layer == layer &&
           sensitivity.rows[i].part == part)
      ++i;
  }
  return stream << sensitivity.metric << " in float: " << number_text(sensitivity.in_float)
                << "; with one layer quantized:\n"
                << table;
}

}  // namespace quantrain::quant
