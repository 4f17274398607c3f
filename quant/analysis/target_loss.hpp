#pragma once

#include <optional>
#include <string>

#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

/// What integers lose of the targets or labels, compared with float.
struct TargetLoss {
  std::string text{};     ///< what is lost, with both numbers
  double number = 0.0;    ///< error in integers / error in float, or the recall in integers
  double severity = 0.0;  ///< 0 to 1: part of the targets' spread, or of the recall
};

/// The worst loss: an output whose integers have more than twice the error to the target, on all
/// rows or on those with the largest targets, and more than a tenth of their spread; or a class
/// whose recall falls by more than a tenth and three standard errors. Empty if there is none.
std::optional<TargetLoss> target_loss(const Diagnosis& diagnosis);

/// The output whose rows that were clipped when they were encoded have, in float, more than three
/// times the error of the other rows, and more than a tenth of the spread of the largest targets.
/// Null if there is none, or if most rows hold such values.
const OutputDiagnosis* clipped_output(const Diagnosis& diagnosis);

}  // namespace quantrain::quant
