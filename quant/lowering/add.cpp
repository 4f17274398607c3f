#include "framework/core/error.hpp"
#include "quant/integer/quantized_add.hpp"
#include "quant/lowering/weights.hpp"

namespace quantrain::quant {

LoweredValue rules::add(LoweringContext& context, const GraphNode& node) {
  const std::string name = LoweringContext::name_of(node);
  if (!context.is_data(node, 0) || !context.is_data(node, 1)) {
    throw GraphError(name, "an addition of a constant has no integer form");
  }
  const LoweredValue& a = context.codes(node, 0);
  const LoweredValue& b = context.codes(node, 1);
  if (!(a.shape == b.shape))
    throw GraphError(
        name, "an addition that broadcasts has no integer form: ", a.shape, " and ", b.shape);
  auto layer = std::make_shared<QuantizedAdd>(
      name, QuantizedAdd::Spec{.shape = a.shape, .a = a.params, .b = b.params});
  return pending(std::move(layer), {a.id, b.id});
}

}  // namespace quantrain::quant
