#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/loader.hpp"
#include "layers/module.hpp"
#include "quant/analysis/recipe.hpp"

namespace quantrain::quant {

/// What has bits of its own: the weights of a layer, or its output.
enum class LayerPart { kWeights, kOutput };
/// "weights", "output".
std::string_view to_string(LayerPart part);

/// A metric of evaluate() (framework/metrics/evaluation.hpp), such as "accuracy" or
/// "cross_entropy", or "output_error", which needs no labels: the root mean square of what
/// quantization changes in all outputs, divided by that of the float outputs' deviations from their
/// mean.
inline constexpr std::string_view kOutputError = "output_error";
/// Whether a metric is an error: output_error, cross_entropy, mae, mse, rmse; not accuracy, r2 ...
bool smaller_is_better(std::string_view metric);

/// Bits to choose from, each list from 1 to 8.
struct BitChoices {
  std::vector<int> weights{8, 6, 4, 3, 2};
  std::vector<int> outputs{8, 6, 4, 3, 2};
};
/// Throws: DataError if the lists are both empty, or a number of bits is out of range or is listed
/// twice.
void validate(const BitChoices& bits, std::string_view where);

struct SensitivityOptions {
  BitChoices bits{};
  std::string metric = "accuracy";
};

/// The metric with one part of one layer quantized, and everything else in float.
struct LayerSensitivity {
  std::string layer;  ///< path, as QConfig::layers names it
  LayerPart part = LayerPart::kWeights;
  int bits = 8;
  double value = 0.0;
  double loss = 0.0;  ///< by how much it is worse than in float; below 0: better
};

struct Sensitivity {
  std::string metric;
  double in_float = 0.0;
  std::vector<LayerSensitivity> rows{};  ///< in the order of the layers, then parts, then bits

  /// Null if it was not measured.
  const LayerSensitivity* find(std::string_view layer, LayerPart part, int bits) const&;
  const LayerSensitivity* find(std::string_view, LayerPart, int) const&& = delete;
};

/// Measures how much quantizing one layer alone costs, at each number of bits, with ranges of
/// calibration (prepare_ptq). Outputs that are the network's logits have 8 bits or 32, and are not
/// listed.
/// The trained network, in float or prepared, stays as it was. The recipe says how to make it
/// again, with observers and with the layers to leave in float; its bits do not matter.
/// Throws: DataError if the data have neither labels nor targets, which every metric but
/// output_error needs; what validate(), prepare_ptq(), calibrate() and evaluate() throw.
Sensitivity sensitivity(Module& net,
                        const DataLoader& calibration,
                        const DataLoader& data,
                        const Recipe& recipe,
                        const SensitivityOptions& options = {});

/// Prints a row for each layer and part, with a column for each number of bits.
std::ostream& operator<<(std::ostream& stream, const Sensitivity& sensitivity);

/// A part of a layer whose bits a configuration can choose.
struct ChoosablePart {
  std::string layer;  ///< path, as QConfig::layers names it
  std::string type;   ///< of the layer
  std::string slot;   ///< path of the layer whose slot quantizes it
  LayerPart part = LayerPart::kWeights;
};
/// The parts of a float network, in the order in which their layers run.
/// Throws: as prepare_ptq().
std::vector<ChoosablePart> choosable_parts(Module& floats,
                                           const std::vector<Tensor>& examples,
                                           const QConfig& config);

/// Throws: DataError if the metric needs labels or targets and the first batch has none.
void check_targets(const DataLoader& data, std::string_view metric, std::string_view where);
/// How far outputs are from those in float.   Source: the definition of kOutputError.
double output_error(const std::vector<Tensor>& floats, const std::vector<Tensor>& outputs);

}  // namespace quantrain::quant
