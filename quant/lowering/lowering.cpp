#include "quant/lowering/context.hpp"

#include <algorithm>
#include <map>

#include "framework/core/error.hpp"
#include "quant/integer/quantized_product.hpp"

namespace quantrain::quant {
namespace {

using Rule = LoweredValue (*)(LoweringContext&, const GraphNode&);

const std::map<std::string_view, Rule>& rule_table() {
  static const std::map<std::string_view, Rule> table = {
#define QUANTRAIN_LOWERING_RULE(name) {#name, &rules::name},
#include "quant/lowering/rules.inc"
#undef QUANTRAIN_LOWERING_RULE
  };
  return table;
}

Shape sample_shape(const Tensor& batch) {
  return Shape(std::span<const int64_t>(batch.shape().begin() + 1, batch.shape().end()));
}

void describe(PlanRow& row, const IntegerLayer& layer) {
  row.kernel = layer.kernel();
  row.output_bits =
      layer.output_kind() == OutputKind::kAccumulators ? 32 : layer.output_params().type.bits;
  if (const auto* product = dynamic_cast<const QuantizedProduct*>(&layer)) {
    row.weight_bits = product->weights().bits;
    row.accumulator_bound = product->accumulator_bound();
  }
}

}  // namespace

std::string LoweringContext::name_of(const GraphNode& node) {
  return node.scope().empty() ? std::string(node.type()) : node.scope();
}

bool LoweringContext::is_data(const GraphNode& node, size_t i) const {
  if (!node.inputs[i].defined()) return false;
  const int producer = node.producers[i];
  return producer == GraphNode::kLeaf ? node.inputs[i] == input_
                                      : data_[static_cast<size_t>(producer)];
}

const LoweredValue& LoweringContext::value(const GraphNode& node, size_t i) const {
  const int producer = node.producers[i];
  if (producer == GraphNode::kLeaf) {
    throw GraphError(
        name_of(node),
        "operation ",
        node.type(),
        " reads the network's input, which is not quantized: prepare the network first");
  }
  const auto& value = values_[static_cast<size_t>(producer)];
  if (value == nullptr) {
    throw GraphError(name_of(node),
                     "operation ",
                     node.type(),
                     " reads what ",
                     name_of(graph_.node(producer)),
                     " computes, which has no integer form");
  }
  return *value;
}

const LoweredValue& LoweringContext::codes(const GraphNode& node, size_t i) const {
  const LoweredValue& result = value(node, i);
  if (!result.is_codes()) {
    throw GraphError(name_of(node),
                     "operation ",
                     node.type(),
                     " reads the output of ",
                     result.pending->name(),
                     ", which is not quantized");
  }
  return result;
}

LoweredValue LoweringContext::input(const GraphNode& node, const QParams& params) {
  result_.model.input_params = params;
  result_.model.input_node = node.index;
  LoweredValue value;
  value.id = 0;
  value.shape = result_.model.input_shape;
  value.params = params;
  return value;
}

LoweredValue LoweringContext::emit(const GraphNode& node,
                                   std::shared_ptr<IntegerLayer> layer,
                                   std::vector<int> inputs) {
  LoweredValue value;
  value.id = next_id_++;
  value.shape = layer->output_shape();
  if (layer->output_kind() == OutputKind::kCodes) value.params = layer->output_params();
  result_.model.layers.push_back({std::move(layer), std::move(inputs), value.id, node.index});
  return value;
}

/// Goes through the nodes in order, and writes down what became of each.
class Lowering {
 public:
  Lowering(const Graph& graph, const Tensor& input) : graph_(graph), context_(graph, input) {
    result_.model.input_shape = sample_shape(input);
  }

  Lowered run() {
    for (const GraphNode& node : graph_.nodes()) {
      if (context_.data_[static_cast<size_t>(node.index)]) lower_node(node);
    }
    try {
      lower_output();
    } catch (const Error&) {
      keep_error();
    }
    return std::move(result_);
  }

 private:
  void lower_node(const GraphNode& node) {
    PlanRow row{.name = LoweringContext::name_of(node), .operation = std::string(node.type())};
    const size_t layers_before = result_.model.layers.size();
    try {
      const auto rule = rule_table().find(node.type());
      if (rule == rule_table().end())
        throw GraphError(row.name, "operation ", node.type(), " has no integer form");
      LoweredValue value = rule->second(context_, node);
      const bool emitted = result_.model.layers.size() > layers_before;
      if (value.pending != nullptr) {
        add_pending(std::move(row), *value.pending);
      } else if (emitted) {
        add_emitted(std::move(row), *result_.model.layers.back().layer);
      }
      context_.values_[static_cast<size_t>(node.index)] =
          std::make_shared<LoweredValue>(std::move(value));
    } catch (const Error& error) {
      keep_error();
      row.reason = error.what();
      result_.rows.push_back(std::move(row));
    }
  }

  // A layer that waits for its parameters, or one more node that is fused with it.
  void add_pending(PlanRow row, const IntegerLayer& layer) {
    const auto [waiting, is_new] = row_of_.emplace(&layer, result_.rows.size());
    if (is_new) {
      describe(row, layer);
      result_.rows.push_back(std::move(row));
    } else {
      std::string& folded = result_.rows[waiting->second].folded;
      folded += (folded.empty() ? "" : ", ") + row.name;
    }
  }

  void add_emitted(PlanRow row, const IntegerLayer& layer) {
    const auto waiting = row_of_.find(&layer);
    if (waiting == row_of_.end()) result_.rows.push_back(std::move(row));
    describe(waiting == row_of_.end() ? result_.rows.back() : result_.rows[waiting->second], layer);
  }

  // The output layer may still wait: where it keeps its accumulators, nothing gives it parameters.
  void lower_output() {
    const int last = graph_.producer(graph_.outputs()[0]);
    if (last == GraphNode::kLeaf || context_.values_[static_cast<size_t>(last)] == nullptr)
      throw GraphError("convert", "the network's output does not depend on its input");
    const LoweredValue value = *context_.values_[static_cast<size_t>(last)];
    result_.model.output = value.id;
    if (value.pending == nullptr) return;
    if (value.pending->output_kind() != OutputKind::kAccumulators ||
        value.activation != Activation::kNone) {
      throw GraphError(value.pending->name(),
                       "the network's output is not quantized: prepare the network first");
    }
    // The accumulators are those of the layer itself, in front of what reshapes them.
    const GraphNode* maker = &graph_.node(last);
    while (maker->type() == "flatten" || maker->type() == "reshape")
      maker = &graph_.node(maker->producers[0]);
    result_.model.output = context_.emit(*maker, value.pending, value.pending_inputs).id;
  }

  // Of the first node that could not be lowered.
  void keep_error() {
    if (result_.error == nullptr) result_.error = std::current_exception();
  }

  const Graph& graph_;
  LoweringContext context_;
  Lowered& result_ = context_.result_;
  std::map<const IntegerLayer*, size_t> row_of_;  // of the layers that wait, or waited
};

Lowered lower(const Graph& graph, const Tensor& input) { return Lowering(graph, input).run(); }

}  // namespace quantrain::quant
