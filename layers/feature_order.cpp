#include "layers/feature_order.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

/// The order of an image [N, ..., C] that is flattened to rows.
FeatureOrder flattened(const Shape& image) {
  const int64_t channels = image.back();
  const int64_t pixels =
      channels == 0 || image[0] == 0 ? 0 : image.elements() / (image[0] * channels);
  if (pixels <= 1 || channels <= 1) return {};
  FeatureOrder order;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (int64_t channel = 0; channel < channels; ++channel)
      order.push_back(channel * pixels + pixel);
  }
  return order;
}

bool multiplies(const GraphNode& node) { return node.node->traits().weight >= 0; }

/// Whether a feature of the result may be another one of x, or depend on others.
bool moves_features(const GraphNode& node) {
  constexpr std::string_view kMoves[] = {"matmul", "pad", "slice", "take", "transpose"};
  return std::find(std::begin(kMoves), std::end(kMoves), node.type()) != std::end(kMoves);
}

/// Whether the node changes each feature of rows by itself, so that input and result have one
/// order.
bool keeps_order(const GraphNode& node, const Tensor& x) {
  return !moves_features(node) && x.defined() && !multiplies(node) && x.rank() == 2 &&
         node.output.shape() == x.shape();
}

}  // namespace

FeatureOrders::FeatureOrders(const Graph& graph, std::string_view where)
    : graph_(graph), where_(where), orders_(graph.nodes().size()) {
  for (const GraphNode& node : graph.nodes()) follow(node);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) demand(*node);
}

const FeatureOrder& FeatureOrders::of(int node) const& {
  static const FeatureOrder kSame;
  return node == GraphNode::kLeaf ? kSame : orders_[static_cast<size_t>(node)];
}

void FeatureOrders::follow(const GraphNode& node) {
  FeatureOrder& order = orders_[static_cast<size_t>(node.index)];
  if (node.output.rank() != 2 || multiplies(node)) return;
  if (node.node->traits().is_view && node.inputs[0].rank() > 2) {
    order = flattened(node.inputs[0].shape());
    return;
  }
  if (node.type() == "concat") {
    order = concatenated(node);
    return;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const FeatureOrder& given = of(node.producers[i]);
    if (given.empty()) continue;
    if (keeps_order(node, node.inputs[i])) {
      if (!order.empty() && order != given)
        refuse(node, "its operands are images that were flattened from different shapes");
      order = given;
    } else if (node.output.dim(1) > 1) {
      refuse(node, "it takes apart an image after it was flattened: do that before");
    }
  }
}

FeatureOrder FeatureOrders::concatenated(const GraphNode& node) const {
  FeatureOrder order;
  bool differs = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const FeatureOrder& given = of(node.producers[i]);
    const auto first = static_cast<int64_t>(order.size());
    for (int64_t k = 0; k < node.inputs[i].dim(1); ++k)
      order.push_back(first + (given.empty() ? k : given[static_cast<size_t>(k)]));
    differs = differs || !given.empty();
  }
  return differs ? order : FeatureOrder();
}

// Rows that become an image, or that are added to a flattened one, must have its order.
void FeatureOrders::demand(const GraphNode& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& x = node.inputs[i];
    const int producer = node.producers[i];
    if (!x.defined() || x.rank() != 2 || producer == GraphNode::kLeaf) continue;
    FeatureOrder needed;
    if (node.node->traits().is_view && node.output.rank() > 2) {
      needed = flattened(node.output.shape());
    } else if (keeps_order(node, x)) {
      needed = of(node.index);
    } else {
      continue;
    }
    FeatureOrder& own = orders_[static_cast<size_t>(producer)];
    if (own == needed) continue;
    const GraphNode& maker = graph_.node(producer);
    const bool can_follow =
        multiplies(maker) || (!maker.inputs.empty() && keeps_order(maker, maker.inputs[0]));
    if (!own.empty() || !can_follow)
      refuse(node, "its operand is in the order of another image, or of none");
    own = std::move(needed);
  }
}

void FeatureOrders::refuse(const GraphNode& node, std::string_view why) const {
  throw GraphError(where_,
                   node.scope().empty() ? std::string(node.type())
                                        : std::string(node.type()) + " " + node.scope(),
                   ": the order of features is unknown, because ",
                   why);
}

}  // namespace quantrain
