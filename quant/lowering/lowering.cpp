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
  value.params = layer->output_params();
  result_.model.layers.push_back({std::move(layer), std::move(inputs), value.id, node.index});
  return value;
}

Lowered lower(const Graph& graph, const Tensor& input) {
  LoweringContext context(graph, input);
  Lowered& result = context.result_;
  result.model.input_shape = sample_shape(input);
  std::map<const IntegerLayer*, size_t>
      row_of;  // pending layers, whose row is completed when they are emitted
  for (const GraphNode& node : graph.nodes()) {
    if (!context.data_[static_cast<size_t>(node.index)]) continue;
    PlanRow row{.name = LoweringContext::name_of(node), .operation = std::string(node.type())};
    const size_t layers_before = result.model.layers.size();
    try {
      const auto rule = rule_table().find(node.type());
      if (rule == rule_table().end())
        throw GraphError(row.name, "operation ", node.type(), " has no integer form");
      LoweredValue value = rule->second(context, node);
      if (value.pending != nullptr &&
          row_of.emplace(value.pending.get(), result.rows.size()).second) {
        describe(row, *value.pending);
        result.rows.push_back(row);
      } else if (value.pending != nullptr) {
        std::string& folded = result.rows[row_of.at(value.pending.get())].folded;
        folded += (folded.empty() ? "" : ", ") + row.name;
      } else if (result.model.layers.size() > layers_before) {
        const IntegerLayer& emitted = *result.model.layers.back().layer;
        const auto waiting = row_of.find(&emitted);
        if (waiting == row_of.end()) result.rows.push_back(row);
        describe(waiting == row_of.end() ? result.rows.back() : result.rows[waiting->second],
                 emitted);
      }
      context.values_[static_cast<size_t>(node.index)] =
          std::make_shared<LoweredValue>(std::move(value));
    } catch (const Error& error) {
      if (result.error == nullptr) result.error = std::current_exception();
      row.reason = error.what();
      result.rows.push_back(row);
    }
  }

  // The output layer keeps its accumulators: nothing has given them parameters.
  const int last = graph.producer(graph.outputs()[0]);
  if (last == GraphNode::kLeaf || context.values_[static_cast<size_t>(last)] == nullptr) {
    if (result.error == nullptr) {
      result.error = std::make_exception_ptr(
          GraphError("convert", "the network's output does not depend on its input"));
    }
    return result;
  }
  const LoweredValue value = *context.values_[static_cast<size_t>(last)];
  result.model.output = value.id;
  if (value.pending != nullptr) {
    const bool accumulators = value.pending->output_kind() == OutputKind::kAccumulators;
    if (!accumulators || value.activation != Activation::kNone) {
      if (result.error == nullptr) {
        result.error = std::make_exception_ptr(
            GraphError(value.pending->name(),
                       "the network's output is not quantized: prepare the network first"));
      }
      return result;
    }
    // The accumulators are those of the layer itself, in front of what reshapes them.
    const GraphNode* maker = &graph.node(last);
    while (maker->type() == "flatten" || maker->type() == "reshape")
      maker = &graph.node(maker->producers[0]);
    result.model.output = context.emit(*maker, value.pending, value.pending_inputs).id;
  }
  return result;
}

}  // namespace quantrain::quant
