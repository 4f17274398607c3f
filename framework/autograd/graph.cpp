#include "framework/autograd/graph.hpp"

#include <algorithm>
#include <map>
#include <ostream>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

auto same(const Tensor& tensor) {
  return [&tensor](const Tensor& other) { return other.same_as(tensor); };
}

// The recorded results that lead to the outputs, keyed by the sequence number of their nodes.
std::map<uint64_t, Tensor> collect(const std::vector<Tensor>& outputs) {
  std::map<uint64_t, Tensor> found;
  std::vector<Tensor> pending = outputs;
  while (!pending.empty()) {
    const Tensor tensor = std::move(pending.back());
    pending.pop_back();
    if (!tensor.defined() || tensor.node() == nullptr) continue;
    const Node& node = *tensor.node();
    if (node.released())
      throw GraphError(
          "graph", node.type(), " was freed by a backward pass; backward(true) keeps the graph");
    if (!found.emplace(node.sequence(), tensor).second) continue;
    pending.insert(pending.end(), node.inputs().begin(), node.inputs().end());
  }
  return found;
}

std::string value_text(const Tensor& tensor) {
  TextStream text;
  switch (tensor.kind()) {
    case ValueKind::kFloat: return "float";
    case ValueKind::kWaiting: return "waiting";
    case ValueKind::kCodes: text << "codes " << TensorAccess::code_params(tensor);
  }
  return text.str();
}

}  // namespace

Graph::Graph(std::vector<Tensor> outputs) : outputs_(std::move(outputs)) {
  for (const Tensor& output : outputs_) {
    if (!output.defined()) throw GraphError("graph", "the output is undefined");
  }
  std::map<uint64_t, int> index_of;
  const auto add_leaf = [&](const Tensor& leaf) {
    if (std::find_if(leaves_.begin(), leaves_.end(), same(leaf)) == leaves_.end())
      leaves_.push_back(leaf);
  };
  for (auto& [sequence, output] : collect(outputs_)) {
    GraphNode entry;
    entry.index = static_cast<int>(nodes_.size());
    entry.node = output.node();
    entry.output = output;
    entry.inputs = entry.node->inputs();
    for (const Tensor& input : entry.inputs) {
      if (!input.defined() || input.node() == nullptr) {
        if (input.defined()) add_leaf(input);
        entry.producers.push_back(GraphNode::kLeaf);
        continue;
      }
      const int producer = index_of.at(input.node()->sequence());
      entry.producers.push_back(producer);
      nodes_[static_cast<size_t>(producer)].consumers.push_back(entry.index);
    }
    index_of.emplace(sequence, entry.index);
    nodes_.push_back(std::move(entry));
  }
  for (const Tensor& output : outputs_) {
    if (output.node() == nullptr) add_leaf(output);
  }
}

const GraphNode& Graph::node(int index) const& {
  if (index < 0 || index >= std::ssize(nodes_))
    throw GraphError("graph", "node ", index, " does not exist: there are ", nodes_.size());
  return nodes_[static_cast<size_t>(index)];
}

int Graph::producer(const Tensor& tensor) const {
  if (!tensor.defined()) throw GraphError("graph", "the tensor is undefined");
  if (tensor.node() != nullptr) {
    const auto at = std::lower_bound(nodes_.begin(),
                                     nodes_.end(),
                                     tensor.node()->sequence(),
                                     [](const GraphNode& entry, uint64_t sequence) {
                                       return entry.node->sequence() < sequence;
                                     });
    if (at != nodes_.end() && at->node == tensor.node()) return at->index;
  } else if (std::find_if(leaves_.begin(), leaves_.end(), same(tensor)) != leaves_.end()) {
    return GraphNode::kLeaf;
  }
  throw GraphError("graph", "the tensor of shape ", tensor.shape(), " is not part of the graph");
}

std::vector<int> Graph::consumers(const Tensor& tensor) const& {
  const int made_by = producer(tensor);
  if (made_by != GraphNode::kLeaf) return consumers(made_by);
  std::vector<int> result;
  for (const GraphNode& entry : nodes_) {
    result.insert(
        result.end(),
        static_cast<size_t>(std::count_if(entry.inputs.begin(), entry.inputs.end(), same(tensor))),
        entry.index);
  }
  return result;
}

std::vector<bool> Graph::dependents(const Tensor& tensor) const {
  std::vector<bool> result;
  for (const GraphNode& entry : nodes_) {
    bool depends = false;
    for (size_t i = 0; i < entry.inputs.size(); ++i) {
      const int producer = entry.producers[i];
      depends = depends || entry.inputs[i].same_as(tensor) ||
                (producer != GraphNode::kLeaf && result[static_cast<size_t>(producer)]);
    }
    result.push_back(depends);
  }
  return result;
}

void Graph::visit(const std::function<void(const GraphNode&)>& function) const {
  if (!function) throw GraphError("graph", "visit has no function to call");
  for (const GraphNode& entry : nodes_) function(entry);
}

std::string Graph::label(const Tensor& tensor) const {
  if (!tensor.defined()) return "-";
  const int made_by = producer(tensor);
  if (made_by != GraphNode::kLeaf) return '%' + std::to_string(made_by);
  if (!tensor.name().empty()) return tensor.name();
  return "leaf" + std::to_string(std::find_if(leaves_.begin(), leaves_.end(), same(tensor)) -
                                 leaves_.begin());
}

std::ostream& operator<<(std::ostream& stream, const Graph& graph) {
  for (const GraphNode& entry : graph.nodes()) {
    stream << '%' << entry.index << ' ' << entry.type();
    if (!entry.scope().empty()) stream << ' ' << entry.scope();
    const char* separator = " (";
    for (const Tensor& input : entry.inputs) {
      stream << separator << graph.label(input);
      separator = ", ";
    }
    stream << ") -> " << entry.output.shape() << ' ' << value_text(entry.output);
    const Attributes attributes = entry.node->attributes();
    if (!attributes.empty()) stream << ' ' << attributes;
    stream << '\n';
  }
  return stream;
}

}  // namespace quantrain
