#include "quant/integer/quantized_pool2d.hpp"
#include "quant/lowering/weights.hpp"

namespace quantrain::quant {
namespace {

QuantizedMaxPool2d::Spec pool_spec(const LoweredValue& x, const GraphNode& node) {
  const Attributes attributes = node.node->attributes();
  const std::vector<int64_t>& kernel = attributes.integers("kernel");
  const std::vector<int64_t>& stride = attributes.integers("stride");
  const std::vector<int64_t>& padding = attributes.integers("padding");
  return {.shape = {.n = 1,
                    .h = x.shape[0],
                    .w = x.shape[1],
                    .c = x.shape[2],
                    .o = x.shape[2],
                    .kh = kernel[0],
                    .kw = kernel[1],
                    .stride_h = stride[0],
                    .stride_w = stride[1],
                    .pad_h = padding[0],
                    .pad_w = padding[1]},
          .x = x.params};
}

}  // namespace

LoweredValue rules::max_pool2d(LoweringContext& context, const GraphNode& node) {
  const LoweredValue& x = context.codes(node, 0);
  const std::string name = LoweringContext::name_of(node);
  return context.emit(node, std::make_shared<QuantizedMaxPool2d>(name, pool_spec(x, node)), {x.id});
}

LoweredValue rules::avg_pool2d(LoweringContext& context, const GraphNode& node) {
  const LoweredValue& x = context.codes(node, 0);
  auto layer =
      std::make_shared<QuantizedAvgPool2d>(LoweringContext::name_of(node), pool_spec(x, node));
  return pending(std::move(layer), {x.id});
}

}  // namespace quantrain::quant
