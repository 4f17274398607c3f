#include <cmath>
#include <ostream>
#include <string>

#include "framework/core/text_table.hpp"
#include "quant/analysis/diagnosis.hpp"
#include "quant/analysis/findings.hpp"
#include "quant/analysis/number_text.hpp"

namespace quantrain::quant {
namespace {

std::string decibels(double snr) { return std::isfinite(snr) ? decimals(snr, 1) : "exact"; }

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
  for (int64_t c = 0; c < classes.floats.classes(); ++c) {
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
  for (const OutputDiagnosis& output : diagnosis.outputs) {
    const std::optional<LargestTargets>& largest = output.largest_targets;
    const bool targets = output.target_rmse_float && output.target_rmse_integers;
    table.add({output.name,
               number_text(output.spread),
               number_text(output.rmse),
               number_text(output.max_error),
               number_text(output.relative),
               targets ? number_text(*output.target_rmse_float) : "-",
               targets ? number_text(*output.target_rmse_integers) : "-",
               largest ? number_text(largest->rmse_float) : "-",
               largest ? number_text(largest->rmse_integers) : "-"});
  }
  stream << '\n' << table;
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
