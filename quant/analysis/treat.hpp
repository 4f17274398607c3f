#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quant/analysis/diagnose.hpp"
#include "quant/analysis/recipe.hpp"

namespace quantrain::quant {

/// What became of a network after a finding's advice was followed.
struct Treatment {
  Finding finding;
  std::string done;             ///< what was changed
  QConfig config;               ///< of the treated network
  std::shared_ptr<Module> net;  ///< the treated network, prepared, calibrated and frozen
  Diagnosis before;
  Diagnosis after;
  /// Why the advice could not be followed. Then there is no net, and `after` is empty.
  std::string refusal{};
  /// Whether Recipe::encode made the data of `after`. Its float values are then those of the new
  /// codes, which may be clipped. Only recall and errors to targets show what the range costs.
  bool encoded_again = false;

  /// Classes whose recall fell by more than two standard errors, and outputs whose error to the
  /// target grew by more than that, compared with the integers or the floats of `before`, whichever
  /// are worse: "recall of class 1", "error of output[0] to its target".
  std::vector<std::string> worse() const;
  /// Whether the advice was followed, `after` no longer has a finding of this kind in this layer,
  /// and nothing is worse().
  bool cured() const;
};

/// Follows the advice of a finding on a copy: makes the network in float, copies the state, changes
/// what the finding says, prepares it by prepare_ptq, calibrates it with the data, and diagnoses
/// again. A network that was trained in QAT is so compared with its quantization without training.
/// If the range of the input changes and the data are plain floats, `after` compares with the float
/// network on the values before they saturate.
/// `net` is left as it was. Parameters may change so that the float network still computes the same
/// (channels divided by a factor that the next layer multiplies back; an offset moved into the next
/// layer's bias). Two treatments change what it computes: outputs of unequal size are divided by
/// their spread, and a dead layer's biases are raised (Recipe::train then trains it).
/// Throws: GraphError if recipe.make is null or makes another network; QuantError if the advice
/// cannot be followed automatically, naming what prevents it; what diagnose() throws.
Treatment treat(Module& net,
                const DataLoader& data,
                const Finding& finding,
                const Recipe& recipe,
                const DiagnoseOptions& options = {});
/// Treats each finding of a report of diagnose(net, data, options), each on a copy of its own. If a
/// finding cannot be treated, its Treatment::refusal says why, and the others are treated.
/// Throws: GraphError if recipe.make is null or makes another network.
std::vector<Treatment> treat(Module& net,
                             const DataLoader& data,
                             const Diagnosis& report,
                             const Recipe& recipe,
                             const DiagnoseOptions& options = {});

/// Prints what was done, and numbers before and after: of the layer and the outputs (unless the
/// data were encoded again), errors to targets, accuracy and the recall of each class.
std::ostream& operator<<(std::ostream& stream, const Treatment& treatment);

}  // namespace quantrain::quant
