#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/autograd/node.hpp"
#include "layers/network/network.hpp"
#include "layers/onnx/layout.hpp"
#include "layers/onnx/model.hpp"
#include "layers/onnx/refused_nodes.hpp"

namespace quantrain::onnx {

class Importer;
struct NodeImport;

/// Adds the steps of a node, and gives its outputs.
using Handler = std::function<void(NodeImport&)>;
using HandlerTable = std::map<std::string, Handler>;

/// One node while it is imported: its inputs, and where its outputs go.
struct NodeImport {
  Importer& importer;
  const Node& node;
  std::vector<Value> inputs;
  std::vector<Value> outputs{};

  /// Whether input i is there.
  bool has(size_t i) const;
  /// An input that a step computes. Throws: Refusal if it is absent or a constant.
  const Value& x(size_t i = 0) const;
  /// Throws: Refusal if the input is absent or not a constant.
  const Constant& constant(size_t i) const;
  bool is_constant(size_t i) const { return has(i) && inputs[i].constant != nullptr; }
  /// The only element of a constant.
  float scalar(size_t i) const;
  /// Integers from a constant input or, in older operator sets, from an attribute; `otherwise` if
  /// there is neither.
  std::vector<int64_t> integers(size_t input,
                                std::string_view attribute,
                                std::vector<int64_t> otherwise = {}) const;
  void give(Value y) { outputs.push_back(std::move(y)); }
};

/// Makes the parts of a Network from a checked graph: walks the nodes, folds those whose inputs are
/// constants, and calls the handler of each other node, which adds steps.
class Importer {
 public:
  /// shapes, described_constants: as in OnnxOptions. own: handlers of the caller's own operators,
  /// by "domain.type".
  Importer(const Model& model,
           const std::map<std::string, std::vector<int64_t>>& shapes = {},
           int64_t described_constants = int64_t{1} << 20,
           HandlerTable own = {});

  /// Walks all nodes that the outputs need. Throws: DataError that lists everything that cannot be
  /// imported.
  void run();

  // What handlers use.
  Atoms& atoms() { return atoms_; }
  FoldBudget& budget() { return budget_; }
  int64_t opset() const { return opset_; }
  /// The batch extent that the file declares, or 1 if it is not known.
  int64_t declared_batch() const { return declared_batch_; }
  std::vector<Extent> shape(const Value& x) const;
  /// Extent of an axis that is not the batch. Throws: Refusal.
  int64_t extent(const Value& x, int axis) const;

  /// The value with these axes in our tensor, by steps that reshape or move if that is needed.
  /// If the first begins with the batch and has more, that becomes the second.
  /// Throws: Refusal if the first does not begin with the batch.
  Value arranged(const Value& x, Groups wanted);
  /// arranged() with the axes of the file in this order.
  Value ordered(const Value& x, const std::vector<int>& axes);
  /// arranged() as [N, the other axes ..., these axes as one], in which the order of their atoms
  /// may be any.
  struct Last {
    Value x;
    Group axis;  ///< in the file's order
    Group held;  ///< in the tensor's
  };
  Last with_last(const Value& x, const std::vector<int>& axes);
  Last with_last(const Value& x, int axis) { return with_last(x, std::vector<int>{axis}); }
  /// The place in the file's order for each place in the tensor's; empty if they are equal.
  std::vector<int64_t> permutation(const Last& last) const {
    return onnx::permutation(atoms_, last.axis, last.held);
  }
  /// The value with other extents. Elements move only if the file's order of the elements is
  /// neither the tensor's nor a regrouping of it.
  Value reshaped(const Value& x, const std::vector<Extent>& target);
  /// Gives the storage of a value its final order.
  void settle(const Value& x, bool channels_last);

  /// Adds a step and returns its name. weight: the name of the initializer from which the step's
  /// name is taken, if there is one.
  std::string add(const std::string& name,
                  std::shared_ptr<Module> layer,
                  const std::vector<std::string>& inputs);
  /// Adds a step of the current node whose result has the same storage and axes as x.
  Value function_of(const Value& x, std::shared_ptr<Module> layer);
  Value function_of(const Value& x, std::shared_ptr<Module> layer, std::vector<std::string> inputs);
  /// Adds a step that multiplies by a number.
  Value scaled(const Value& x, float number);
  /// A tensor that steps read, and its name.
  std::string add_tensor(const std::string& name, Tensor tensor, bool is_parameter);
  /// A name for a step of the current node: from a weight's name "conv1.weight", else the node's.
  std::string step_name(const Node& node, std::string_view weight = {}) const;

  /// The node that alone reads a node's output, if it is of this type and its other input is a
  /// constant; else null. absorb() gives it y as its output; it is then not imported.
  const Node* only_reader(const std::string& output, std::string_view op_type) const;
  ConstantPtr other_constant(const Node& node, const std::string& input);
  void absorb(const Node& reader, const Value& y);

  /// A value by its name.
  Value value(const std::string& name);
  const Model& model() const { return model_; }
  /// After run(): the network, and its inputs and outputs as they ended up.
  NetworkParts& parts() { return parts_; }
  const std::vector<Value>& network_inputs() const { return network_inputs_; }
  const std::vector<Value>& network_outputs() const { return network_outputs_; }
  /// The values whose numbers became the weights of steps, by step.
  const std::map<std::string, std::string>& weights() const { return weights_; }
  /// Says that a value's numbers became the weights of a step.
  void note_weights(const std::string& step, const std::string& value) { weights_[step] = value; }
  /// Elements of a sample of the largest value.
  int64_t largest_value() const { return largest_value_; }
  /// Elements of a sample of all values together.
  int64_t all_values() const { return all_values_; }

 private:
  /// The name, or one like it if it is taken.
  std::string take_name(std::string path, bool may_have_groups);
  /// The value with these axes, if only the order within each axis differs from the tensor's. That
  /// is a move for each axis, which also deploys.
  std::optional<Value> reordered(const Value& x, const Groups& wanted);
  /// Whether the storage of a value can still become this.
  bool can_settle(const Value& x, const Groups& wanted) const;
  /// Adds to all_values().
  void count(int64_t elements);
  void add_input(const ValueInfo& info, const std::vector<int64_t>* shape);
  std::vector<bool> needed() const;
  void import_node(size_t index);
  /// Throws: Refusal if no handler knows the operator.
  void check_known(const NodeImport& import) const;
  /// Gives a node its outputs. Throws: Refusal, ShapeError.
  void compute(NodeImport& import);
  [[noreturn]] void report() const;
  void finish_outputs();
  void finish_inputs();

  /// The node's handler; null if there is none.
  const Handler* handler(const Node& node) const;

  const Model& model_;
  HandlerTable own_;
  int64_t opset_;
  int64_t declared_batch_ = 1;
  FoldBudget budget_;
  Atoms atoms_;
  std::unordered_map<std::string, const StoredTensor*> initializers_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, std::vector<size_t>> readers_;  // of a value: nodes
  std::set<std::string> outputs_;
  std::vector<Value> network_inputs_;
  std::vector<Value> network_outputs_;
  std::set<size_t> absorbed_;
  const Node* current_ = nullptr;
  int64_t largest_value_ = 0;
  int64_t all_values_ = 0;
  std::set<std::string> names_;         // of inputs, steps and tensors
  std::map<std::string, int> repeats_;  // of a name, the last number that was appended
  std::set<std::string> groups_;        // paths that have steps below them
  NetworkParts parts_;
  std::map<std::string, std::string> weights_;
  RefusedNodes refused_;
};

/// The handlers by operator, from the files import_*.cpp.
const HandlerTable& handlers();

void add_products(HandlerTable& table);
void add_pools(HandlerTable& table);
void add_moves(HandlerTable& table);
void add_images(HandlerTable& table);
void add_functions(HandlerTable& table);
void add_arithmetic(HandlerTable& table);

/// A tensor of these floats.
quantrain::Tensor tensor_of(const std::vector<int64_t>& shape, const std::vector<float>& values);

}  // namespace quantrain::onnx
