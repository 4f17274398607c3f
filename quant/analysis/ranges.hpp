#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "layers/module.hpp"
#include "quant/arithmetic.hpp"
#include "quant/training/phase.hpp"

namespace quantrain::quant {

/// What a slot of a prepared network spends its codes on.
struct SlotRange {
  std::string name;  ///< path of the layer and its slot, as in the state: "0.weight_slot"
  QType type;
  std::optional<QParams> params{};  ///< none: it was not calibrated
  /// Where the parameters come from: "data", "weights", "observed", "learned" or "given".
  std::string source;
  Phase phase = Phase::kTraining;

  /// Real values that the codes reach, of all channels together. Throws: QuantError if there are no
  /// parameters.
  Range range() const;
};

struct Ranges {
  std::vector<SlotRange> slots;
};

/// The ranges of a prepared network's inputs, weights and outputs, in the order of its modules.
/// Those of weights are of the weights as they are, batch norms folded; a bias that needs a larger
/// scale, which depends on the input, is not counted.   docs/quantization.md (5)
/// Throws: GraphError if the network is not prepared; DataError if a loaded state makes no sense.
Ranges ranges(Module& net);

/// A table: slot, codes, smallest and largest value, scale (of channels, the smallest and the
/// largest), zero point, source and phase.
std::ostream& operator<<(std::ostream& stream, const Ranges& ranges);

}  // namespace quantrain::quant
