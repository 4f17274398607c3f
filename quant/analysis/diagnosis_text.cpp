#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "framework/core/text_table.hpp"
#include "quant/analysis/diagnosis.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/number_text.hpp"

namespace quantrain::quant {
namespace {

std::string decibels(double snr) { return std::isfinite(snr) ? decimals(snr, 1) : "exact"; }

/// The indices of the largest values, in their order; of few values, all.
std::vector<size_t> largest(const std::vector<double>& values) {
  constexpr size_t kShown = 20;
  std::vector<size_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), size_t{0});
  if (values.size() <= kShown + 1) return indices;
  const auto key = [&](size_t i) { return std::isnan(values[i]) ? INFINITY : values[i]; };
  std::stable_sort(
      indices.begin(), indices.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  indices.resize(kShown);
  std::sort(indices.begin(), indices.end());
  return indices;
}

void print_others(std::ostream& stream, size_t count, const char* what) {
  if (count > 0)
    stream << "and " << count << " more " << what << ", which lose less: to_json() has them\n";
}

void print_layers(std::ostream& stream, const Diagnosis& diagnosis) {
  TextTable table("llrrrrrrrrr");
  table.add({"layer",
             "operation",
             "min",
             "max",
             "codes",
             "saturated %",
             "weights dB",
             "alone dB",
             "all dB",
             "constant",
             "headroom bits"});
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    const bool floats = layer.floats.values > 0;
    table.add(
        {layer.name,
         layer.operation,
         floats ? number_text(layer.floats.range.min) : "-",
         floats ? number_text(layer.floats.range.max) : "-",
         layer.params ? std::to_string(layer.codes_used) + " of " + std::to_string(layer.codes)
                      : "int32",
         layer.params && floats ? decimals(100.0 * layer.saturated(), 1) : "-",
         layer.weights ? decibels(layer.weights->snr) : "-",
         layer.is_input || layer.weights || !layer.slot.empty() ? decibels(layer.snr_alone) : "-",
         floats ? decibels(layer.snr_accumulated) : "-",
         std::to_string(layer.constant) + " of " + std::to_string(layer.channels),
         layer.accumulators ? decimals(layer.accumulators->headroom_bits, 1) : "-"});
  }
  stream << table;
}

void print_classes(std::ostream& stream, const ClassesDiagnosis& classes) {
  TextTable table("rrrrr");
  table.add({"class", "samples", "recall in float", "simulated", "integers"});
  // Of many classes, those that lose most.
  std::vector<double> loss;
  for (int64_t c = 0; c < classes.floats.classes(); ++c)
    loss.push_back(classes.floats.recall(c) - classes.integers.recall(c));
  const std::vector<size_t> shown = largest(loss);
  for (const size_t index : shown) {
    const auto c = static_cast<int64_t>(index);
    int64_t samples = 0;
    for (int64_t p = 0; p < classes.floats.classes(); ++p) samples += classes.floats.count(c, p);
    table.add({std::to_string(c),
               std::to_string(samples),
               decimals(classes.floats.recall(c), 3),
               decimals(classes.simulated.recall(c), 3),
               decimals(classes.integers.recall(c), 3)});
  }
  stream << "\naccuracy: " << decimals(classes.floats.accuracy(), 4) << " in float, "
         << decimals(classes.integers.accuracy(), 4) << " in integers\n"
         << table;
  print_others(stream, loss.size() - shown.size(), "classes");
}

void print_outputs(std::ostream& stream, const Diagnosis& diagnosis) {
  TextTable table("lrrrrrrrr");
  table.add({"output",
             "spread",
             "rmse",
             "largest error",
             "rmse / spread",
             "rmse to target, float",
             "integers",
             "largest targets, float",
             "integers"});
  std::vector<double> errors;
  for (const OutputDiagnosis& output : diagnosis.outputs) errors.push_back(output.relative);
  const std::vector<size_t> shown = largest(errors);
  for (const size_t index : shown) {
    const OutputDiagnosis& output = diagnosis.outputs[index];
    const std::optional<LargestTargets>& targeted = output.largest_targets;
    const bool targets = output.target_rmse_float && output.target_rmse_integers;
    table.add({output.name,
               number_text(output.spread),
               number_text(output.rmse),
               number_text(output.max_error),
               number_text(output.relative),
               targets ? number_text(*output.target_rmse_float) : "-",
               targets ? number_text(*output.target_rmse_integers) : "-",
               targeted ? number_text(targeted->rmse_float) : "-",
               targeted ? number_text(targeted->rmse_integers) : "-"});
  }
  stream << '\n' << table;
  print_others(stream, errors.size() - shown.size(), "outputs");
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) stream << "no finding";
  for (size_t i = 0; i < diagnosis.findings.size(); ++i) {
    const Finding& finding = diagnosis.findings[i];
    stream << (i == 0 ? "" : "\n") << i + 1 << ". " << to_string(finding.kind) << " in \""
           << finding.layer << "\" (" << loss_text(finding, diagnosis) << "): " << finding.cause
           << "\n   -> " << finding.advice;
  }
  stream << "\n\n"
         << diagnosis.samples << " samples; " << diagnosis.integers_different
         << " integers of the outputs differ from the simulation\n\n";
  print_layers(stream, diagnosis);
  if (diagnosis.classes) print_classes(stream, *diagnosis.classes);
  print_outputs(stream, diagnosis);
  return stream;
}

}  // namespace quantrain::quant
