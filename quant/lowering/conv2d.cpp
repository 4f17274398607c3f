#include "quant/integer/quantized_conv2d.hpp"
#include "quant/lowering/weights.hpp"

namespace quantrain::quant {

LoweredValue rules::conv2d(LoweringContext& context, const GraphNode& node) {
  const LoweredValue& x = context.codes(node, 0);
  const Attributes attributes = node.node->attributes();
  const std::vector<int64_t>& stride = attributes.integers("stride");
  const std::vector<int64_t>& padding = attributes.integers("padding");
  const Shape& w = node.inputs[1].shape();
  const kernels::Conv2dShape shape{.n = 1,
                                   .h = x.shape[0],
                                   .w = x.shape[1],
                                   .c = x.shape[2],
                                   .o = w[0],
                                   .kh = w[1],
                                   .kw = w[2],
                                   .stride_h = stride[0],
                                   .stride_w = stride[1],
                                   .pad_h = padding[0],
                                   .pad_w = padding[1],
                                   .groups = attributes.integer("groups")};
  auto layer = std::make_shared<QuantizedConv2d>(
      LoweringContext::name_of(node),
      QuantizedConv2d::Spec{
          .shape = shape, .weights = lower_weights(node, x.params), .x = x.params});
  return pending(std::move(layer), {x.id});
}

}  // namespace quantrain::quant
