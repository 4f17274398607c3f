#pragma once

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/integer/input_encoding.hpp"
#include "layers/module.hpp"
#include "layers/network/layer_type.hpp"
#include "layers/network/operation.hpp"

namespace quantrain {

/// An input of a Network. All but the name describe the data, for example() and for people; the
/// network takes samples of other extents if its layers do.
struct NetworkInput {
  std::string name = "input";
  std::vector<int64_t> shape{};       ///< extents of one sample, such as {28, 28, 1}
  std::optional<Range> range{};       ///< real values of the lowest and highest code
  integer::InputFeatures features{};  ///< offset and scale for each index of the last axis
  std::vector<std::string> feature_names{};
};

/// A tensor of the network's own, which steps read like an input: a parameter that belongs to no
/// layer, or a constant.
struct NetworkTensor {
  std::string name;
  Tensor tensor;
  bool is_parameter = false;  ///< it is trained; else it is a buffer, saved but not trained
};

/// One layer, and what it reads.
struct NetworkStep {
  std::string name;  ///< path of the layer: "block1.conv"
  std::shared_ptr<Module> layer;
  std::vector<std::string> inputs;  ///< names of inputs, tensors, or steps before this one
};

struct NetworkParts {
  std::vector<NetworkInput> inputs{};
  std::vector<NetworkTensor> tensors{};
  std::vector<NetworkStep> steps{};  ///< in the order in which they run
  std::vector<std::string> outputs{};
  std::vector<std::string> classes{};  ///< names of the classes, for people
  /// Names of steps in the order in which named_modules() and named_parameters() list them. Steps
  /// that are not named follow in the order in which they run.
  std::vector<std::string> listed{};
  std::map<std::string, std::string> metadata{};  ///< anything that its maker wants to keep
};

/// A network whose layers and wiring are data. It trains, is prepared, converted and saved like
/// any module, and a file can hold it whole (network_file.hpp):
///   Network net({.inputs = {{"image", {28, 28, 1}}},
///                .steps = {{"conv", std::make_shared<Conv2d>(1, 8), {"image"}},
///                          {"relu", std::make_shared<ReLU>(), {"conv"}},
///                          {"sum", std::make_shared<Add>(), {"relu", "conv"}}},
///                .outputs = {"sum"}});
/// trace() makes one from any module. A step's name is the path of its layer: parameters are named
/// "conv.weight", and dots make groups, as a module with children would. A batch norm and the ReLU
/// or ReLU6 that alone reads it run as one operation, with the same result.
class Network : public Module {
 public:
  static constexpr std::string_view kType = "Network";

  /// Takes the layers, which belong to this network from now on: they get their names from it.
  /// Throws: GraphError, before anything changes, if there is no input or no output; if a name is
  /// empty, not UTF-8, has an empty part, is used twice, or is both a step and a group ("a" and
  /// "a.b"); if a step or output reads an unknown name, or a step reads itself or a later step; if
  /// a layer is null, is used twice, or takes another number of inputs; if a tensor is undefined.
  explicit Network(NetworkParts parts);

  std::string_view type() const override { return kType; }

  const std::vector<NetworkInput>& inputs() const& { return parts_.inputs; }
  std::vector<NetworkInput> inputs() const&& { return parts_.inputs; }
  const std::vector<NetworkTensor>& tensors() const& { return parts_.tensors; }
  std::vector<NetworkTensor> tensors() const&& { return parts_.tensors; }
  const std::vector<NetworkStep>& steps() const& { return parts_.steps; }
  std::vector<NetworkStep> steps() const&& { return parts_.steps; }
  const std::vector<std::string>& outputs() const& { return parts_.outputs; }
  std::vector<std::string> outputs() const&& { return parts_.outputs; }
  const std::vector<std::string>& classes() const& { return parts_.classes; }
  std::vector<std::string> classes() const&& { return parts_.classes; }
  const NetworkParts& parts() const& { return parts_; }
  NetworkParts parts() const&& = delete;

  /// Descriptions may change at any time.
  /// Throws: GraphError if the number of inputs or an input's name differs.
  void describe_inputs(std::vector<NetworkInput> inputs);
  void set_classes(std::vector<std::string> classes) { parts_.classes = std::move(classes); }
  /// Texts of the program's own, which save_network() keeps.
  std::map<std::string, std::string>& metadata() & { return parts_.metadata; }
  const std::map<std::string, std::string>& metadata() const& { return parts_.metadata; }

  /// A batch of one sample of zeros for each input, with the codes that its range and features
  /// declare: the example for prepare_qat, convert and summary.
  /// Throws: GraphError if an input's shape is unknown; QuantError if its range is invalid.
  std::vector<Tensor> example() const;

 protected:
  Tensor forward(const Tensor& x) override { return take_forward(x); }
  Tensor take_forward(Tensor x) override;
  Tensor forward(const Tensor& a, const Tensor& b) override { return only({a, b}); }
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override;

 private:
  /// A step, ready to run. Values are numbered: inputs, tensors, then steps.
  struct Run {
    Module* layer;
    std::string group;  ///< path of the layer's parent
    std::vector<size_t> reads;
    std::vector<bool> last_read;  ///< nobody reads the value after this step
    bool fuses = false;           ///< the next step alone reads the result, in the same group
    bool is_list = false;         ///< the layer takes a list of inputs
  };

  void adopt();
  void plan(const std::unordered_map<std::string, size_t>& values);
  Tensor only(std::vector<Tensor> x);
  std::vector<Tensor> run(std::vector<Tensor> x);

  NetworkParts parts_;
  std::vector<Run> runs_;
  std::vector<size_t> outputs_;
};

/// Prints a line for each input, step and output:
/// "conv  Conv2d  image  stride=[1, 1] ... weight [8, 3, 3, 1] bias [8]".
std::ostream& operator<<(std::ostream& stream, const Network& network);

}  // namespace quantrain
