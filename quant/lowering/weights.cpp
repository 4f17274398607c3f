#include "quant/lowering/weights.hpp"

#include <algorithm>
#include <set>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"

namespace quantrain::quant {

QuantizedWeights lower_weights(const GraphNode& node, const QParams& x) {
  const std::string name = LoweringContext::name_of(node);
  const Tensor& weight = node.inputs[1];
  const Tensor& bias = node.inputs[2];
  if (weight.kind() != ValueKind::kCodes) throw QuantError(name, "the weights are not quantized");
  const Codes& codes = *weight.codes();
  if (codes.storage != CodeStorage::kS8) {
    throw QuantError(
        name, "affine weights exist in simulation only: the integer engine has symmetric ones");
  }
  QuantizedWeights weights{.codes = std::vector<int8_t>(codes.s8(), codes.s8() + weight.elements()),
                           .scale = codes.params.scale,
                           .bias = {},
                           .bits = codes.params.type.bits};
  if (!bias.defined()) return weights;
  const Floats values = bias.floats();
  for (int64_t o = 0; o < bias.elements(); ++o) {
    const float scale = weights.scale[weights.scale.size() == 1 ? 0 : static_cast<size_t>(o)];
    weights.bias.push_back(quantize_bias(values.data()[o], x.scale[0], scale));
  }
  return weights;
}

LoweredValue pending(std::shared_ptr<IntegerLayer> layer, std::vector<int> inputs) {
  LoweredValue value;
  value.shape = layer->output_shape();
  value.pending = std::move(layer);
  value.pending_inputs = std::move(inputs);
  return value;
}

}  // namespace quantrain::quant
