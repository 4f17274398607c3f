#include "quant/analysis/pairing.hpp"

#include <string_view>

namespace quantrain::quant {
namespace {

// How many nodes of the same layer and type come before this one.
int turn_of(const Graph& graph, const GraphNode& node) {
  int turn = 0;
  for (int i = 0; i < node.index; ++i) {
    const GraphNode& before = graph.node(i);
    turn += before.scope() == node.scope() && before.type() == node.type() ? 1 : 0;
  }
  return turn;
}

}  // namespace

Tensor paired(const Graph& graph, const GraphNode& node, const Graph& other) {
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i].same_as(node.output)) return other.outputs()[i];
  }
  const bool quantizes = node.type() == "fake_quantize";
  const GraphNode* found = nullptr;
  int turn = quantizes ? -1 : turn_of(graph, node);
  for (const GraphNode& candidate : other.nodes()) {
    if (candidate.scope() != node.scope()) continue;
    if (quantizes) {
      found = &candidate;  // the slot follows the last operation of its layer
    } else if (candidate.type() == node.type() && turn-- == 0) {
      found = &candidate;
      break;
    }
  }
  if (found == nullptr && quantizes && node.producers[0] != GraphNode::kLeaf)
    return paired(graph, graph.node(node.producers[0]), other);
  return found != nullptr && found->output.shape() == node.output.shape() ? found->output
                                                                          : Tensor();
}

}  // namespace quantrain::quant
