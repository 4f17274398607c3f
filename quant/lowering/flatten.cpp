#include "framework/core/error.hpp"
#include "quant/integer/quantized_rescale.hpp"
#include "quant/lowering/context.hpp"

namespace quantrain::quant {

LoweredValue rules::flatten(LoweringContext& context, const GraphNode& node) {
  return rules::reshape(context, node);
}

LoweredValue rules::reshape(LoweringContext& context, const GraphNode& node) {
  const std::string name = LoweringContext::name_of(node);
  const Shape& y = node.output.shape();
  if (y.rank() < 1 || y[0] != node.inputs[0].dim(0)) {
    throw GraphError(name,
                     "a reshape of the batch axis has no integer form: ",
                     node.inputs[0].shape(),
                     " to ",
                     y);
  }
  // What waits for its parameters may be the network's output, and logits have no shape but a row.
  if (LoweredValue waiting = context.value(node, 0); !waiting.is_codes()) {
    if (context.graph().consumers(node.producers[0]).size() != 1) {
      throw GraphError(name, "what is reshaped waits for its range and has another consumer");
    }
    waiting.reshaped = true;
    return waiting;
  }
  const LoweredValue& x = context.codes(node, 0);
  const Shape output(std::span<const int64_t>(y.begin() + 1, y.end()));
  auto layer = std::make_shared<QuantizedFlatten>(
      name, QuantizedFlatten::Spec{.input = x.shape, .output = output, .x = x.params});
  return context.emit(node, std::move(layer), {x.id});
}

}  // namespace quantrain::quant
