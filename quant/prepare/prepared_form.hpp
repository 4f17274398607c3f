#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/module.hpp"
#include "quant/prepare/qconfig.hpp"

// What fills the slots of a prepared network, as plain data: prepare_qat and prepare_ptq make it,
// copies and files repeat it.
namespace quantrain::quant {

struct InputForm {
  QParams params;
  integer::InputFeatures features{};
  std::string name = "input";
  Outside outside = Outside::kRefuseMost;
};

/// The slots of one layer.
struct LayerForm {
  std::string path{};
  std::optional<WeightConfig> weight{};  ///< of a WeightQuantizer
  /// The names of the layer's own weight and bias. Empty: the layer computes the weight from its
  /// parameters; then `given` are the tensors of the pass that was recorded.
  std::string weight_name{};
  std::string bias_name{};
  Weights given{};
  /// Of a PreparedBatchNorm: the path of the layer whose weights fold the batch norm, or empty.
  std::optional<std::string> product{};
  std::optional<FakeQuantizeConfig> output{};  ///< of a FakeQuantize
};

struct PreparedForm {
  QConfig config;
  Simulation simulation = Simulation::kInteger;
  std::vector<InputForm> inputs{};
  std::vector<LayerForm> layers{};
};

/// Fills the slots of a network. Each new module has the mode of its layer.
/// most_bytes: a limit for the state of all new modules, for forms that nobody trusts.
/// Throws: GraphError naming the path if there is no layer there, or none that has such a slot;
/// DataError beyond most_bytes; what the modules throw. On an error, some slots are filled.
void fill_slots(Module& net, const PreparedForm& form, std::optional<int64_t> most_bytes = {});

/// Marks a network whose slots were filled as prepared, so that it can be copied and saved, and
/// that an optimizer made before does not train without the new parameters. On an error, the
/// network is not marked.
void set_form(Module& net, PreparedForm form);

/// The configuration with which a network was prepared.
/// Throws: GraphError if the network is not prepared.
const QConfig& config_of(const Module& net);

/// The form as JSON.   docs/format.md
/// Throws: QuantError naming the layer if it computes its weight from its parameters.
std::string to_json(const PreparedForm& form);
/// Throws: QuantError naming the key that is missing, unknown or out of range.
PreparedForm form_from_json(std::string_view text);

/// Lets load_network() fill slots. Every program that includes prepare.hpp or scopes.hpp calls it.
bool register_slots();
inline const bool slots_are_registered = register_slots();

}  // namespace quantrain::quant
