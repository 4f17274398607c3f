#pragma once

#include "framework/autograd/graph.hpp"

namespace quantrain::quant {

/// The tensor in `other` that has the same place in the network as the output of this node of
/// `graph`. Both graphs are recorded passes of one network, with different slots in float: a layer
/// in float has no fake_quantize, and batch norms that one pass folds are operations in the other.
/// Undefined if there is none.
Tensor paired(const Graph& graph, const GraphNode& node, const Graph& other);

}  // namespace quantrain::quant
