#include "framework/core/error.hpp"
#include "quant/integer/quantized_concat.hpp"
#include "quant/lowering/weights.hpp"

namespace quantrain::quant {

LoweredValue rules::concat(LoweringContext& context, const GraphNode& node) {
  const std::string name = LoweringContext::name_of(node);
  const int axis =
      node.output.shape().axis(static_cast<int>(node.node->attributes().integer("axis")));
  if (axis == 0) throw GraphError(name, "a concatenation along the batch has no integer form");
  QuantizedConcat::Spec spec{.inputs = {}, .axis = axis - 1, .x = {}};
  std::vector<int> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!context.is_data(node, i))
      throw GraphError(name, "a concatenation of a constant has no integer form");
    const LoweredValue& x = context.codes(node, i);
    spec.inputs.push_back(x.shape);
    spec.x.push_back(x.params);
    inputs.push_back(x.id);
  }
  return pending(std::make_shared<QuantizedConcat>(name, std::move(spec)), std::move(inputs));
}

}  // namespace quantrain::quant
