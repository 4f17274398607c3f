#pragma once

#include "quant/integer/quantized_product.hpp"
#include "quant/lowering/context.hpp"

namespace quantrain::quant {

/// Codes and bias of a recorded conv2d or linear, as the simulation computed with.
/// docs/quantization.md (5), (6)
/// Throws: QuantError naming the layer if the weights are floats or affine.
QuantizedWeights lower_weights(const GraphNode& node, const QParams& x);

/// A layer that waits for its output parameters.
LoweredValue pending(std::shared_ptr<IntegerLayer> layer, std::vector<int> inputs);

}  // namespace quantrain::quant
