#include <utility>

#include "framework/core/error.hpp"
#include "quant/integer/quantized_rescale.hpp"
#include "quant/lowering/context.hpp"

namespace quantrain::quant {

// Gives what waits its output parameters, or declares the network's input; codes that have these
// parameters already pass.
LoweredValue rules::fake_quantize(LoweringContext& context, const GraphNode& node) {
  const std::string name = LoweringContext::name_of(node);
  if (node.output.kind() != ValueKind::kCodes) {
    throw QuantError(name,
                     "activations of ",
                     node.node->attributes().integer("bits"),
                     " bits exist in simulation only: the integer engine has 2 to 8");
  }
  const QParams& params = node.output.codes()->params;
  if (params.per_channel() || node.output.codes()->storage != CodeStorage::kU8) {
    throw QuantError(name,
                     "activations per channel, or stored as signed bytes, have no integer form");
  }
  if (node.producers[0] == GraphNode::kLeaf) return context.input(node, params);
  const LoweredValue& x = context.value(node, 0);
  if (x.pending != nullptr) {
    if (x.reshaped) throw GraphError(name, "a reshape stands between it and ", x.pending->name());
    if (context.graph().consumers(node.producers[0]).size() != 1) {
      throw GraphError(x.pending->name(),
                       "its output would need two ranges: it has another consumer");
    }
    x.pending->requantize_to(params, x.activation);
    return context.emit(node, x.pending, x.pending_inputs);
  }
  if (x.params == params) return x;
  auto layer = std::make_shared<QuantizedRescale>(
      name, QuantizedRescale::Spec{.shape = x.shape, .x = x.params});
  layer->requantize_to(params, Activation::kNone);
  return context.emit(node, std::move(layer), {x.id});
}

}  // namespace quantrain::quant
