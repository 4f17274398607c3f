#include "benchmarks/networks.hpp"

#include "framework/core/random.hpp"
#include "layers/record_graph.hpp"

namespace quantrain::benchmarks {
const std::vector<Network>& networks() {
  static const std::vector<Network> all = [] {
    std::vector<Network> found = examples::networks();
    const std::vector<Network>& tiny = examples::tiny_networks();
    found.insert(found.end(), tiny.begin(), tiny.end());
    return found;
  }();
  return all;
}

Tensor noise(const Network& network, int64_t n, uint64_t seed) {
  std::vector<int64_t> extents{n};
  extents.insert(extents.end(), network.input.begin(), network.input.end());
  const Shape shape(extents);
  Random random(seed);
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(shape.elements());
  codes->params = integer::input_params({0.0f, 1.0f}, "noise");
  for (uint8_t& byte : codes->bytes) byte = static_cast<uint8_t>(random.below(256));
  return Tensor::decoded(shape, std::move(codes));
}

std::vector<Layer> layers(const Network& network, int64_t batch) {
  std::vector<Layer> found;
  Sequential net = network.make();
  const Graph graph = record_graph(net, noise(network, 1));
  for (const GraphNode& node : graph.nodes()) {
    const int weight = node.node->traits().weight;
    if (weight < 0) continue;
    const Shape& x = node.inputs[0].shape();
    const Shape& w = node.inputs[static_cast<size_t>(weight)].shape();
    const bool linear = w.rank() == 2;
    Layer layer;
    layer.linear = linear;
    layer.first = found.empty();
    kernels::Conv2dShape& s = layer.shape;
    s.n = batch;
    s.c = x.back();
    s.o = w[0];
    if (!linear) {
      const Attributes attributes = node.node->attributes();
      s.h = x[1];
      s.w = x[2];
      s.kh = w[1];
      s.kw = w[2];
      s.stride_h = attributes.integers("stride")[0];
      s.stride_w = attributes.integers("stride")[1];
      s.pad_h = attributes.integers("padding")[0];
      s.pad_w = attributes.integers("padding")[1];
      s.groups = attributes.integer("groups");
    }
    found.push_back(layer);
  }
  return found;
}

int64_t inference_operations(const Network& network, int64_t batch) {
  int64_t sum = 0;
  for (const Layer& layer : layers(network, batch)) {
    sum += 2 * layer.shape.y_elements() * layer.shape.reduction();
  }
  return sum;
}

int64_t training_operations(const Network& network, int64_t batch) {
  int64_t sum = 0;
  for (const Layer& layer : layers(network, batch)) {
    sum += (layer.first ? 2 : 3) * 2 * layer.shape.y_elements() * layer.shape.reduction();
  }
  return sum;
}

}  // namespace quantrain::benchmarks
