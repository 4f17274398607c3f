#include <algorithm>

#include "framework/core/error.hpp"
#include "quant/integer/quantized_rescale.hpp"
#include "quant/lowering/context.hpp"

namespace quantrain::quant {
namespace {

// Fused into what waits for its parameters; on codes, a clamp of its own.
LoweredValue activation(LoweringContext& context, const GraphNode& node, Activation kind) {
  const std::string name = LoweringContext::name_of(node);
  LoweredValue x = context.value(node, 0);
  if (x.is_codes()) {
    auto layer = std::make_shared<QuantizedRescale>(
        name, QuantizedRescale::Spec{.shape = x.shape, .x = x.params});
    layer->requantize_to(x.params, kind);
    return context.emit(node, std::move(layer), {x.id});
  }
  if (x.reshaped) throw GraphError(name, "a reshape stands between it and ", x.pending->name());
  if (context.graph().consumers(node.producers[0]).size() != 1) {
    throw GraphError(name, "the activation cannot be fused: its input has another consumer");
  }
  x.activation = std::max(x.activation, kind);  // ReLU6 is the tighter one
  return x;
}

}  // namespace

LoweredValue rules::relu(LoweringContext& context, const GraphNode& node) {
  return activation(context, node, Activation::kRelu);
}

LoweredValue rules::relu6(LoweringContext& context, const GraphNode& node) {
  return activation(context, node, Activation::kRelu6);
}

}  // namespace quantrain::quant
