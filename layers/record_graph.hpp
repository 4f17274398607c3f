#pragma once

#include <string_view>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// Throws: GraphError naming `where` if an example is undefined; ShapeError unless there is an
/// example and all examples are batches [N, ...] of at least two axes with the same N >= 1.
void check_examples(std::string_view where, const std::vector<Tensor>& examples);

/// The network's graph over an example, recorded in evaluation mode without gradients.
Graph record_graph(Module& net, const Tensor& example);
Graph record_graph(Module& net, const std::vector<Tensor>& examples);

}  // namespace quantrain
