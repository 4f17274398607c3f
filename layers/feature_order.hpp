#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/autograd/graph.hpp"

namespace quantrain {

/// For each feature of rows [N, F], its index in the order that a framework with images [N, C, H,
/// W] gives to the same feature. Empty if the order is the same.
using FeatureOrder = std::vector<int64_t>;

/// The orders of a graph's rows. Rows are in another order after an image or signal was flattened,
/// [H, W, C] here and [C, H, W] there, or if they become one.
class FeatureOrders {
 public:
  /// Throws: GraphError naming `where` and the layer if the order of rows that a layer uses is
  /// unknown or contradictory.
  FeatureOrders(const Graph& graph, std::string_view where);

  /// The order of the result of a node; empty for GraphNode::kLeaf.
  const FeatureOrder& of(int node) const&;
  FeatureOrder of(int node) && = delete;

 private:
  void follow(const GraphNode& node);
  void demand(const GraphNode& node);
  FeatureOrder concatenated(const GraphNode& node) const;
  [[noreturn]] void refuse(const GraphNode& node, std::string_view why) const;

  const Graph& graph_;
  std::string_view where_;
  std::vector<FeatureOrder> orders_;
};

}  // namespace quantrain
