#pragma once

#include <string>
#include <string_view>

namespace quantrain::quant {

/// What can be wrong with a quantized network.
enum class FindingKind {
  kInputSpikes,         ///< a few values make the input's range much wider than the others need
  kInputNormalization,  ///< most input values saturate, or lie in a small part of the range
  kRareCutOff,          ///< rare large values saturate
  kFarRange,            ///< all values lie far from 0, within few codes
  kUnequalOperands,     ///< an operand of a concatenation has few codes of the common range
  kUnequalOutputs,      ///< one output loses much more of its spread than the others
  kDeadLayer,           ///< most channels never change
  kOutlierWeights,      ///< a channel of per-tensor weights is much larger than the others
  kOutlierChannel,      ///< a channel of the values is much larger than the others
  kStuckScale,          ///< a learned scale does not fit what it quantizes
  kTooFewBits,          ///< this layer's rounding makes most of the network's noise
  kTargetError,         ///< integers miss the targets, or lose a class, without saturating
};

/// "input spikes", "dead layer".
std::string_view to_string(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kTooFewBits;
  std::string layer;      ///< path, as in LayerDiagnosis
  std::string operand{};  ///< kUnequalOperands: path of the operand that loses
  double number = 0.0;    ///< the measure that made it a finding; cause says what it is
  /// LayerDiagnosis::output_error of the layer, or, if it is larger, the part of the targets'
  /// spread or of a class's recall that is lost. Findings are sorted by it; those of 1 or more,
  /// which lose an output, are in the order of the network.
  double output_error = 0.0;
  double bits_lost = 0.0;  ///< precision that the layer's values lose by it
  std::string cause{};
  std::string advice{};  ///< one step, with the call to write

  friend bool operator==(const Finding&, const Finding&) = default;
};

}  // namespace quantrain::quant
