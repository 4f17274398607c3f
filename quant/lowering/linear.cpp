#include "quant/integer/quantized_linear.hpp"
#include "quant/lowering/weights.hpp"

namespace quantrain::quant {

LoweredValue rules::linear(LoweringContext& context, const GraphNode& node) {
  const LoweredValue& x = context.codes(node, 0);
  auto layer = std::make_shared<QuantizedLinear>(
      LoweringContext::name_of(node),
      QuantizedLinear::Spec{.input = x.shape,
                            .outputs = node.inputs[1].dim(0),
                            .weights = lower_weights(node, x.params),
                            .x = x.params});
  return pending(std::move(layer), {x.id});
}

}  // namespace quantrain::quant
