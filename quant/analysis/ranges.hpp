#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "layers/module.hpp"
#include "quant/analysis/diagnosis.hpp"
#include "quant/arithmetic.hpp"
#include "quant/prepare/phase.hpp"

namespace quantrain::quant {

/// The range that a slot of a prepared network covers with its codes.
struct SlotRange {
  std::string name;  ///< path of the layer and its slot, as in the state: "0.weight_slot"
  QType type;
  std::optional<QParams> params{};  ///< empty if not calibrated
  /// Where the parameters come from: "data", "weights", "learned", "given", or the kind of an
  /// observer, such as "min_max".
  std::string source;
  Phase phase = Phase::kTraining;
  /// From a Diagnosis: the share of float values that saturate (0 for weights), and the
  /// signal-to-noise of weights, or of a value with everything before it quantized, in decibels.
  std::optional<double> saturated{};
  std::optional<double> signal_to_noise{};

  /// The smallest and largest real value that a code of any channel stands for.
  /// Throws: QuantError if there are no parameters.
  Range range() const;
};

struct Ranges {
  std::vector<SlotRange> slots;
};

/// The ranges of a prepared network's inputs, weights and outputs, in the order of its modules.
/// Unless their scales are learned or given, weights have the range of their current values, with
/// batch norms folded. A large bias may need a larger weight scale, which depends on the input's
/// scale. The ranges do not take this into account.   docs/quantization.md (5)
/// Throws: GraphError if the network is not prepared; DataError if a loaded state is invalid.
Ranges ranges(Module& net);
/// The same, with what diagnose(net, data) measured.
Ranges ranges(Module& net, const Diagnosis& measured);

/// Prints a table: slot, codes, smallest and largest value, scale, zero point, source and phase; if
/// measured, also the saturated share and the signal-to-noise. If
/// scales or zero points differ between channels, their column shows the smallest and the largest.
std::ostream& operator<<(std::ostream& stream, const Ranges& ranges);

}  // namespace quantrain::quant
