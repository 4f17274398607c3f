#include "quant/lowering/lowering.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "framework/core/error.hpp"
#include "framework/io/json_writer.hpp"
#include "quant/prepare/input_quantize.hpp"
#include "quant/prepare/refusals.hpp"

namespace quantrain::quant {
namespace {

/// Name of the layer in the program and in messages: the node's scope, or its type if it has none.
std::string name_of(const GraphNode& node) {
  return node.scope().empty() ? std::string(node.type()) : node.scope();
}

Shape sample_shape(const Shape& batch) {
  return Shape(std::span<const int64_t>(batch.begin() + 1, batch.end()));
}

void describe_row(PlanRow& row, const integer::Operation& op, int output_bits) {
  row.kernel = kernel(op);
  row.output_bits = output_bits;
  if (const integer::QuantizedProduct* product = integer::product(op))
    row.weight_bits = product->weight.bits();
  row.accumulator_bound = accumulator_bound(op);
}

/// What the node was: its type, attributes and activation, and the scales of its weights.
integer::Origin origin_of(const Node& node, Activation activation) {
  integer::Origin origin;
  origin.about["operation"] = node.type();
  for (const auto& [name, value] : node.attributes()) {
    JsonWriter json;
    std::visit([&](const auto& v) { json.write(v); }, value);
    origin.about[name] = std::move(json).text();
  }
  if (activation != Activation::kNone) origin.about["activation"] = to_string(activation);
  const int weight = node.traits().weight;
  if (weight >= 0) {
    const Tensor& w = node.input(static_cast<size_t>(weight));
    if (w.kind() == ValueKind::kCodes) origin.weight_scale = w.codes()->params.scale;
  }
  return origin;
}

/// The operation reads a result that has no integer form: the cause is an operation before it.
class Blocked : public GraphError {
  using GraphError::GraphError;
};

/// What each operand of a concatenation or addition loses when it takes the scale of the output.
std::vector<PlanOperand> operands_of(const integer::Program& program, const integer::Step& step) {
  std::vector<PlanOperand> operands;
  if (!std::holds_alternative<integer::QuantizedConcat>(step.operation) &&
      !std::holds_alternative<integer::QuantizedAdd>(step.operation)) {
    return operands;
  }
  const double y = static_cast<double>(program.value(step.output).params->scale[0]);
  for (const int id : step.inputs) {
    const integer::Value& x = program.value(id);
    const double ratio = y / static_cast<double>(x.params->scale[0]);
    operands.push_back({.name = x.name,
                        .bits = x.params->type.bits,
                        .range = x.params->float_range(),
                        .lost_bits = std::max(0.0, std::log2(ratio))});
  }
  return operands;
}

/// An operation that waits for the parameters of its output.
struct Waiting {
  const Node* node;
  std::string name;
  std::vector<int> operands;
  size_t row;
};

/// The result of a node: a value of the program, or an operation that waits.
struct LoweredNode {
  int id = -1;
  std::shared_ptr<const Waiting> waiting;
};

/// Lowers the nodes in order and records the result of each.
class Lowering {
 public:
  Lowering(const Graph& graph, const std::vector<Tensor>& inputs)
      : graph_(graph),
        inputs_(inputs),
        samples_(inputs.at(0).dim(0)),
        nodes_(graph.nodes().size()),
        data_(graph.nodes().size(), false),
        input_ids_(inputs.size(), -1) {
    for (const Tensor& input : inputs) {
      const std::vector<bool> depends = graph.dependents(input);
      for (size_t i = 0; i < depends.size(); ++i) data_[i] = data_[i] || depends[i];
    }
  }

  Lowered run() {
    for (const GraphNode& node : graph_.nodes()) {
      if (data_[static_cast<size_t>(node.index)]) lower_node(node);
    }
    cause_.clear();
    try {
      for (const Tensor& output : graph_.outputs()) lower_output(output);
      check_inputs();
      if (result_.error == nullptr) validate(result_.program);
    } catch (const Error& error) {
      // After an error of an operation, its consequences are not listed.
      if (result_.error == nullptr && is_structural(error))
        result_.refused.push_back({cause_, std::current_exception()});
      keep_error();
    }
    return std::move(result_);
  }

 private:
  /// Whether input i depends on the network's inputs. Weights do not.
  bool is_data(const GraphNode& node, size_t i) const {
    if (!node.inputs[i].defined()) return false;
    const int producer = node.producers[i];
    return producer == GraphNode::kLeaf ? input_position(node.inputs[i]) >= 0
                                        : data_[static_cast<size_t>(producer)];
  }

  /// Position of the value that input i reads.
  int codes(const GraphNode& node, size_t i) const {
    const LoweredNode& made = lowered(node, i);
    if (made.id < 0) {
      throw Blocked(name_of(node),
                    "operation ",
                    node.type(),
                    " reads the output of ",
                    made.waiting->name,
                    ", which is not quantized");
    }
    return made.id;
  }

  /// Adds the operation as a step; its output is the node's output, which holds codes.
  void emit(const GraphNode& node, integer::Operation operation, std::vector<int> inputs) {
    check_batch(node);
    add_step(node, name_of(node), std::move(operation), std::move(inputs));
    if (!node.node->traits().is_view)
      result_.program.steps.back().origin = origin_of(*node.node, Activation::kNone);
    describe_new_row(node);
  }

  int input_position(const Tensor& tensor) const {
    const auto found = std::find_if(
        inputs_.begin(), inputs_.end(), [&](const Tensor& x) { return x.same_as(tensor); });
    return found == inputs_.end() ? -1 : static_cast<int>(found - inputs_.begin());
  }

  LoweredNode& of(const GraphNode& node) { return nodes_[static_cast<size_t>(node.index)]; }

  /// The result that input i reads: a value, or an operation that waits. Throws if there is
  /// neither.
  const LoweredNode& lowered(const GraphNode& node, size_t i) const {
    const int producer = node.producers[i];
    if (producer == GraphNode::kLeaf) {
      throw GraphError(
          name_of(node),
          "operation ",
          node.type(),
          " reads the network's input, which is not quantized: prepare the network first");
    }
    const LoweredNode& made = nodes_[static_cast<size_t>(producer)];
    if (made.id < 0 && made.waiting == nullptr) {
      throw Blocked(name_of(node),
                    "operation ",
                    node.type(),
                    " reads the output of ",
                    name_of(graph_.node(producer)),
                    ", which has no integer form");
    }
    return made;
  }

  /// The ids of the values that the node reads and that depend on the network's inputs.
  std::vector<int> data_codes(const GraphNode& node) const {
    std::vector<int> ids;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_data(node, i)) ids.push_back(codes(node, i));
    }
    return ids;
  }

  void lower_node(const GraphNode& node) {
    row_ = PlanRow{.name = name_of(node), .operation = std::string(node.type())};
    cause_ = node.scope();
    try {
      switch (node.output.kind()) {
        case ValueKind::kCodes: return lower_codes(node);
        case ValueKind::kWaiting: return lower_waiting(node);
        case ValueKind::kFloat: return refuse(node);
      }
    } catch (const Error& error) {
      keep_error();
      if (is_structural(error)) result_.refused.push_back({cause_, std::current_exception()});
      row_.reason = error.what();
      result_.rows.push_back(std::move(row_));
    }
  }

  /// Whether no range, weight or number of bits can remove the error.
  static bool is_structural(const Error& error) {
    return dynamic_cast<const GraphError*>(&error) != nullptr &&
           dynamic_cast<const Blocked*>(&error) == nullptr;
  }

  void check_batch(const GraphNode& node) const {
    const Shape& y = node.output.shape();
    if (y.rank() < 1 || y[0] != samples_) refuse_batch_axis(name_of(node), node);
  }

  // Three cases: the node quantizes the network's input, it passes on the codes of one of its
  // inputs, or it computes new codes by the integer operation that its output names
  // (Codes::operation).
  void lower_codes(const GraphNode& node) {
    const std::shared_ptr<const Codes>& made = node.output.codes();
    const bool reads_input =
        node.producers[0] == GraphNode::kLeaf && input_position(node.inputs[0]) >= 0;
    if (reads_input && (made->operation == nullptr || made == input_codes(node.inputs[0])))
      return lower_input(node);
    check_batch(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor& x = node.inputs[i];
      if (!is_data(node, i) || x.kind() != ValueKind::kCodes || x.codes() != made) continue;
      const int id = codes(node, i);
      if (x.shape() == node.output.shape()) {
        of(node).id = id;
        return;
      }
      const Shape shape = sample_shape(node.output.shape());
      return emit(node, integer::View{shape.elements()}, {id});
    }
    const LoweredNode& first = lowered(node, 0);
    if (made->operation == nullptr) node.node->refuse_integers(name_of(node));
    if (first.waiting == nullptr) return emit(node, *made->operation, data_codes(node));
    if (graph_.consumers(node.producers[0]).size() != 1) {
      cause_ = first.waiting->node->scope();
      throw GraphError(first.waiting->name,
                       "its output has two consumers and would need a range for each: put one "
                       "FakeQuantize, which both read, into slots().output");
    }
    const Waiting& waiting = *first.waiting;
    if (waiting.operands.size() != input_sizes(*made->operation).size())
      waiting.node->refuse_integers(waiting.name);
    add_step(node, waiting.name, *made->operation, waiting.operands);
    result_.program.steps.back().origin =
        origin_of(*waiting.node, TensorAccess::activation(node.inputs[0]));
    PlanRow& row = result_.rows[waiting.row];
    describe_row(row, *made->operation, made->params.type.bits);
    row.closed_by = node.scope();
    row.operands = operands_of(result_.program, result_.program.steps.back());
  }

  // The node is a reshape or an activation of a waiting operation's output, or is itself an
  // operation that has to wait.
  void lower_waiting(const GraphNode& node) {
    check_batch(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor& x = node.inputs[i];
      if (!is_data(node, i) || x.kind() != ValueKind::kWaiting ||
          TensorAccess::waiting(x) != TensorAccess::waiting(node.output)) {
        continue;
      }
      if (graph_.consumers(node.producers[i]).size() != 1) {
        cause_ = lowered(node, i).waiting->node->scope();
        throw GraphError(
            name_of(node),
            "cannot be fused: another operation also reads its input, whose range is not "
            "known yet; put a FakeQuantize into slots().output of the layer before");
      }
      of(node) = lowered(node, i);
      std::string& folded = result_.rows[of(node).waiting->row].folded;
      folded += (folded.empty() ? "" : ", ") + row_.name;
      return;
    }
    std::vector<int> operands = data_codes(node);
    if (const auto sums = TensorAccess::waiting(node.output)->sums()) {
      validate(*sums->operation, row_.name);
      describe_row(row_, *sums->operation, 32);
    }
    of(node).waiting = std::make_shared<const Waiting>(
        Waiting{node.node.get(), row_.name, std::move(operands), result_.rows.size()});
    result_.rows.push_back(std::move(row_));
  }

  // The output holds floats. Throws an error that names the cause: an input, the weights or the
  // node itself. An input that holds codes is no cause, even if the operation that gave them has no
  // integer form.
  void refuse(const GraphNode& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_data(node, i) || node.inputs[i].kind() == ValueKind::kCodes) continue;
      lowered(node, i);
      if (node.node->traits().closes_range) codes(node, i);
    }
    const int weight = node.node->traits().weight;
    if (weight >= 0) {
      const Tensor& w = node.inputs[static_cast<size_t>(weight)];
      if (w.kind() != ValueKind::kCodes)
        throw QuantError(name_of(node),
                         "the weights are not quantized: configure the layer with quantize = true "
                         "in the QConfig");
      if (w.codes()->storage != CodeStorage::kS8) {
        throw QuantError(
            name_of(node),
            "affine weights exist in simulation only: set WeightConfig::scheme to kSymmetric");
      }
    }
    node.node->refuse_integers(name_of(node));
  }

  void lower_input(const GraphNode& node) {
    const auto position = static_cast<size_t>(input_position(node.inputs[0]));
    if (input_ids_[position] >= 0)
      throw GraphError(name_of(node), "input ", position, " of the network is quantized twice");
    check_activation(node.output.codes()->params, name_of(node));
    input_ids_[position] =
        add_value(node, inputs_.size() == 1 ? "input" : "input" + std::to_string(position));
    if (const auto& features = node.output.codes()->features)
      result_.program.values.back().features = *features;
    of(node).id = input_ids_[position];
  }

  int add_value(const GraphNode& node, std::string name) {
    integer::Value value{.name = std::move(name), .shape = sample_shape(node.output.shape())};
    if (node.output.kind() == ValueKind::kCodes) {
      value.params = node.output.codes()->params;
    } else {
      value.scale = TensorAccess::waiting(node.output)->sums()->scale;
      const bool one = std::all_of(value.scale.begin(), value.scale.end(), [&](double scale) {
        return scale == value.scale[0];
      });
      if (one) value.scale.resize(1);
    }
    result_.program.values.push_back(std::move(value));
    result_.nodes.push_back(node.index);
    return static_cast<int>(result_.program.values.size()) - 1;
  }

  void add_step(const GraphNode& node,
                const std::string& name,
                integer::Operation operation,
                std::vector<int> inputs) {
    if (inputs.size() != input_sizes(operation).size()) node.node->refuse_integers(name);
    validate(operation, name);
    if (node.output.kind() == ValueKind::kCodes)
      check_activation(node.output.codes()->params, name);
    of(node).id = add_value(node, name);
    of(node).waiting = nullptr;
    result_.program.steps.push_back({std::move(operation), std::move(inputs), of(node).id});
  }

  void describe_new_row(const GraphNode& node) {
    describe_row(
        row_, result_.program.steps.back().operation, node.output.codes()->params.type.bits);
    row_.closed_by = node.scope();
    result_.rows.push_back(std::move(row_));
  }

  // The output layer may still wait: if it keeps its accumulators, its output has no parameters.
  void lower_output(const Tensor& output) {
    const int last = graph_.producer(output);
    if (last == GraphNode::kLeaf || !data_[static_cast<size_t>(last)])
      throw GraphError("convert",
                       "the network's output does not depend on its input in the recorded graph: "
                       "every operation must end with return record<ItsNode>(y, {x})");
    const GraphNode& node = graph_.node(last);
    LoweredNode& made = of(node);
    if (made.waiting != nullptr) {
      const auto sums = TensorAccess::waiting(output)->sums();
      if (!sums || TensorAccess::activation(output) != Activation::kNone) {
        cause_ = made.waiting->node->scope();
        throw GraphError(made.waiting->name,
                         "the network's output is not quantized: prepare the network first");
      }
      const std::shared_ptr<const Waiting> waiting = made.waiting;
      add_step(node, waiting->name, *sums->operation, waiting->operands);
      result_.program.steps.back().origin = origin_of(*waiting->node, Activation::kNone);
      describe_row(result_.rows[waiting->row], *sums->operation, 32);
    }
    if (made.id < 0) throw GraphError(name_of(node), "the network's output has no integer form");
    result_.program.outputs.push_back(made.id);
  }

  void check_inputs() {
    for (size_t i = 0; i < input_ids_.size(); ++i) {
      if (input_ids_[i] < 0) throw GraphError("convert", "input ", i, " is not used");
    }
    result_.program.inputs = input_ids_;
  }

  // Keeps the first error.
  void keep_error() {
    if (result_.error == nullptr) result_.error = std::current_exception();
  }

  const Graph& graph_;
  const std::vector<Tensor>& inputs_;
  int64_t samples_;
  std::vector<LoweredNode> nodes_;
  std::vector<bool> data_;
  std::vector<int> input_ids_;
  PlanRow row_;        // of the current node
  std::string cause_;  // layer that is the cause if the current node cannot be lowered
  Lowered result_;
};

}  // namespace

Lowered lower(const Graph& graph, const std::vector<Tensor>& inputs) {
  return Lowering(graph, inputs).run();
}

}  // namespace quantrain::quant
