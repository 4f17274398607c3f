#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autograd/node.hpp"

namespace quantrain {

/// One recorded operation and its place in the graph.
struct GraphNode {
  static constexpr int kLeaf = -1;

  int index = 0;  ///< position in Graph::nodes()
  std::shared_ptr<const Node> node;
  Tensor output;
  std::vector<Tensor> inputs;  ///< undefined where an operand is absent
  std::vector<int> producers;  ///< for each input: index of the node that computed it; kLeaf for a
                               ///< leaf or an absent operand
  std::vector<int> consumers;  ///< nodes that read the output, ascending; a node that reads it
                               ///< twice is listed twice

  std::string_view type() const { return node->type(); }
  const std::string& scope() const& { return node->scope(); }
  std::string scope() const&& { return node->scope(); }
};

/// Read-only view of the recorded operations that lead to one or several outputs. It holds its own
/// handles on nodes and tensors, so it stays complete when a later backward pass frees the recorded
/// graph.
class Graph {
 public:
  /// Throws: GraphError if an output is undefined, or a backward pass has freed a part of its
  /// graph.
  explicit Graph(const Tensor& output) : Graph(std::vector<Tensor>{output}) {}
  explicit Graph(std::vector<Tensor> outputs);

  /// In the order of recording: producers come before consumers.
  const std::vector<GraphNode>& nodes() const& { return nodes_; }
  std::vector<GraphNode> nodes() && { return std::move(nodes_); }
  /// Throws: GraphError if there is no such node. consumers(index) throws it, too.
  const GraphNode& node(int index) const&;
  GraphNode node(int index) && { return node(index); }
  const std::vector<Tensor>& outputs() const& { return outputs_; }
  std::vector<Tensor> outputs() && { return std::move(outputs_); }
  /// Inputs and parameters, in the order of their first use.
  const std::vector<Tensor>& leaves() const& { return leaves_; }
  std::vector<Tensor> leaves() && { return std::move(leaves_); }

  /// Index of the node that computed this tensor; GraphNode::kLeaf for a leaf of the graph.
  /// Throws: GraphError if the tensor is not in the graph.
  int producer(const Tensor& tensor) const;
  /// Nodes that read the output of node `index`.
  const std::vector<int>& consumers(int index) const& { return node(index).consumers; }
  std::vector<int> consumers(int index) && { return node(index).consumers; }
  /// Nodes that read this tensor, ascending. The tensor may be a leaf. A node that reads it twice
  /// is listed twice.
  std::vector<int> consumers(const Tensor& tensor) const&;
  /// For each node: whether its output depends on this tensor.
  std::vector<bool> dependents(const Tensor& tensor) const;
  /// Calls the function for each node, in order.   Throws: GraphError if the function is null.
  void visit(const std::function<void(const GraphNode&)>& function) const;

  /// Name of a tensor in dumps: "%4" for the output of node 4; for a leaf its name or, if it
  /// has none, "leaf" and its index in leaves(), such as "leaf0"; "-" for an undefined tensor.
  std::string label(const Tensor& tensor) const;

 private:
  std::vector<Tensor> outputs_;
  std::vector<GraphNode> nodes_;
  std::vector<Tensor> leaves_;
};

/// Prints one line for each node:
/// "%4 conv2d block1.conv (%3, block1.conv.weight, -) -> [8, 14, 14, 16] float stride=[1, 1] ...".
std::ostream& operator<<(std::ostream& stream, const Graph& graph);

}  // namespace quantrain
