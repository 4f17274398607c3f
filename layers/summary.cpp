#include "layers/summary.hpp"

#include <algorithm>
#include <ostream>

#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "layers/dry_run.hpp"
#include "layers/record_graph.hpp"

namespace quantrain {
namespace {

bool is_below(std::string_view path, std::string_view layer) {
  if (layer.empty()) return true;
  return path.substr(0, layer.size()) == layer &&
         (path.size() == layer.size() || path[layer.size()] == '.');
}

/// The deepest layer that contains `path`, the path of a recorded node or of a parameter.
LayerSummary& owner(std::vector<LayerSummary>& layers, std::string_view path) {
  LayerSummary* deepest = &layers.front();
  for (LayerSummary& layer : layers) {
    if (layer.name.size() >= deepest->name.size() && is_below(path, layer.name)) deepest = &layer;
  }
  return *deepest;
}

/// The multiply-adds of one node. Each output element needs one multiply-add for each weight of its
/// output channel.
int64_t multiply_adds(const GraphNode& node) {
  const int weight_input = node.node->traits().weight;
  if (weight_input < 0) return 0;
  const Shape& weight = node.inputs[static_cast<size_t>(weight_input)].shape();
  return weight[0] == 0 ? 0 : node.output.elements() * (weight.elements() / weight[0]);
}

std::vector<std::string> row(const LayerSummary& layer) {
  TextStream shape;
  if (!layer.output.empty()) shape << Shape(layer.output);
  return {layer.name.empty() ? "(itself)" : layer.name,
          layer.type,
          shape.str(),
          grouped(layer.parameters),
          grouped(layer.multiply_adds)};
}

}  // namespace

Summary summary(Module& net, const Tensor& example) {
  return summary(net, std::vector<Tensor>{example});
}

Summary summary(Module& net, const std::vector<Tensor>& examples) {
  check_examples("summary", examples);
  const DryRun dry;
  const Graph graph = record_graph(net, examples);

  std::vector<LayerSummary> layers;
  for (const NamedModule& entry : net.named_modules()) {
    layers.push_back({entry.name, std::string(entry.module->type()), {}, 0, 0});
  }
  graph.visit([&](const GraphNode& node) {
    LayerSummary& layer = owner(layers, node.scope());
    layer.output.assign(node.output.shape().begin(), node.output.shape().end());
    layer.multiply_adds += multiply_adds(node) / examples[0].dim(0);
  });
  for (const NamedState& parameter : net.named_parameters()) {
    owner(layers, parameter.name).parameters += parameter.tensor.elements();
  }

  Summary result;
  for (LayerSummary& layer : layers) {
    const bool is_container =
        std::any_of(layers.begin(), layers.end(), [&](const LayerSummary& other) {
          return other.name != layer.name && is_below(other.name, layer.name);
        });
    if (is_container && layer.output.empty() && layer.parameters == 0) continue;
    result.parameters += layer.parameters;
    result.multiply_adds += layer.multiply_adds;
    result.layers.push_back(layer);
  }
  return result;
}

std::ostream& operator<<(std::ostream& stream, const Summary& summary) {
  TextTable table("lllrr");
  table.add({"layer", "type", "output", "parameters", "multiply-adds"});
  for (const LayerSummary& layer : summary.layers) table.add(row(layer));
  table.add({"total", "", "", grouped(summary.parameters), grouped(summary.multiply_adds)});
  return stream << table;
}

}  // namespace quantrain
