#include "quant/analysis/target_loss.hpp"

#include <algorithm>
#include <cmath>

#include "quant/analysis/number_text.hpp"

namespace quantrain::quant {
namespace {

constexpr double kTwice = 2.0;
// 8 bits lose about 1 % of the spread, 4 bits 6 %.
constexpr double kLargePart = 0.1;
constexpr double kCertain = 3.0;
constexpr double kClippedError = 3.0;

class Worst {
 public:
  void look_at(const std::string& rows, double in_float, double in_integers, double spread) {
    const double more = std::sqrt(std::max(0.0, in_integers * in_integers - in_float * in_float));
    if (in_integers <= kTwice * in_float || more <= kLargePart * spread || spread == 0.0) return;
    keep({.text = rows + " has an error to the target of " + number_text(in_integers) +
                  " in integers, " + number_text(in_float) + " in float",
          .number = in_integers / std::max(in_float, 1e-9),
          .severity = std::min(1.0, more / spread)});
  }
  void look_at_class(int64_t label, int64_t samples, double in_float, double in_integers) {
    const auto n = static_cast<double>(samples);
    if (samples == 0 || in_float - in_integers <= kLargePart) return;
    // One sample more on each side, so that a recall of 1 has an error, too.
    const double p = (n * in_float + 1.0) / (n + 2.0);
    if (in_float - in_integers <= kCertain * std::sqrt(p * (1.0 - p) / n)) return;
    keep({.text = "the recall of class " + std::to_string(label) + " is " +
                  number_text(in_integers) + " in integers, " + number_text(in_float) + " in float",
          .number = in_integers,
          .severity = in_float - in_integers});
  }
  std::optional<TargetLoss> result() && { return std::move(worst_); }

 private:
  void keep(TargetLoss loss) {
    if (!worst_ || loss.severity > worst_->severity) worst_ = std::move(loss);
  }
  std::optional<TargetLoss> worst_;
};

}  // namespace

std::optional<TargetLoss> target_loss(const Diagnosis& diagnosis) {
  Worst worst;
  for (const OutputDiagnosis& output : diagnosis.outputs) {
    if (output.target_rmse_float && output.target_rmse_integers)
      worst.look_at(
          output.name, *output.target_rmse_float, *output.target_rmse_integers, output.spread);
    if (!output.largest_targets) continue;
    const LargestTargets& largest = *output.largest_targets;
    worst.look_at(output.name + ", on the rows with the largest targets (" +
                      std::to_string(largest.rows) + ", between " +
                      number_text(static_cast<double>(largest.targets.min)) + " and " +
                      number_text(static_cast<double>(largest.targets.max)) + "),",
                  largest.rmse_float,
                  largest.rmse_integers,
                  largest.distance);
  }
  if (diagnosis.classes) {
    const ConfusionMatrix& floats = diagnosis.classes->floats;
    for (int64_t c = 0; c < floats.classes(); ++c) {
      int64_t samples = 0;
      for (int64_t p = 0; p < floats.classes(); ++p) samples += floats.count(c, p);
      worst.look_at_class(c, samples, floats.recall(c), diagnosis.classes->integers.recall(c));
    }
  }
  return std::move(worst).result();
}

const OutputDiagnosis* clipped_output(const Diagnosis& diagnosis) {
  for (const OutputDiagnosis& output : diagnosis.outputs) {
    if (!output.clipped_rows || !output.largest_targets) continue;
    const ClippedRows& clipped = *output.clipped_rows;
    if (clipped.rows == 0 || 2 * clipped.rows > diagnosis.samples) continue;
    if (clipped.rmse_float > kClippedError * clipped.rmse_float_others &&
        clipped.rmse_float > kLargePart * output.largest_targets->distance)
      return &output;
  }
  return nullptr;
}

}  // namespace quantrain::quant
