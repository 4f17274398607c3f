#include "quant/methods/products.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "layers/record_graph.hpp"

namespace quantrain::quant {
namespace {

bool is_product(const GraphNode& node) { return node.node->traits().weight >= 0; }

// The activation that is fused with the product at this node of a deployed pass.
Activation fused_activation(const Graph& graph, const GraphNode& product) {
  const GraphNode* last = &product;
  while (last->consumers.size() == 1) {
    const GraphNode& next = graph.node(last->consumers[0]);
    if (next.output.kind() != ValueKind::kWaiting) break;
    last = &next;
  }
  return last->output.kind() == ValueKind::kWaiting ? TensorAccess::activation(last->output)
                                                    : Activation::kNone;
}

}  // namespace

void find_fixed(std::vector<Product>& products) {
  for (Product& product : products) {
    const Tensor& weight = product.slot->own().weight;
    const std::vector<NamedState> own = product.layer->named_parameters();
    const bool is_parameter = std::any_of(own.begin(), own.end(), [&](const NamedState& entry) {
      return entry.tensor.same_as(weight);
    });
    if (!is_parameter) product.fixed = "the layer computes its weight from its parameters";
    if (product.slot->config().function)
      product.fixed = "its weights pass the weight function " +
                      std::string(kind(*product.slot->config().function));
    for (const Product& other : products) {
      if (&other != &product && other.slot->own().weight.same_as(weight))
        product.fixed = "\"" + other.path + "\" shares its weight";
    }
  }
}

FoldedBias Product::folded() const {
  const NoGrad no_grad;
  if (slot->folding() == nullptr) return {slot->own().bias, Tensor()};
  Folding as_deployed = *slot->folding();
  as_deployed.training = false;
  return fold_bias(slot->own(), as_deployed);
}

std::vector<float> Product::folded_weight() const {
  const Tensor& own = slot->own().weight;
  const Floats w = own.floats();
  std::vector<float> values(w.data(), w.data() + w.size());
  const Tensor factor = folded().factor;
  if (!factor.defined()) return values;
  const Floats factors = factor.floats();
  const auto inner = values.size() / static_cast<size_t>(factors.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] *= factors[i / inner];
  return values;
}

void Product::set_folded_weight(std::span<const float> values) const {
  const Tensor factor = folded().factor;
  const Floats factors = (factor.defined() ? factor : Tensor::full({1}, 1.0f)).floats();
  const size_t inner = values.size() / static_cast<size_t>(factors.size());
  Tensor own = slot->own().weight;
  float* const w = own.mutable_data();
  for (size_t i = 0; i < values.size(); ++i) w[i] = values[i] / factors[i / inner];
}

Tensor Product::shift() const {
  return slot->folding() != nullptr ? slot->folding()->beta : slot->own().bias;
}

std::vector<Product> products_of(Module& net, const std::vector<Tensor>& examples) {
  const Graph graph = deployed_pass(net, examples);
  std::vector<Product> products;
  for (const GraphNode& node : graph.nodes()) {
    if (!is_product(node)) continue;
    Module& layer = net.find(node.scope());
    auto* const slot = dynamic_cast<WeightQuantizer*>(layer.slots().weight.get());
    if (slot == nullptr) continue;
    products.push_back({node.scope(), &layer, slot, fused_activation(graph, node)});
  }
  if (products.empty()) {
    throw QuantError(net.label(),
                     "has no layer with quantized weights: a convolution or Linear needs an entry "
                     "of QConfig whose quantize is true");
  }
  find_fixed(products);
  return products;
}

std::vector<Tensor> first_inputs(const DataLoader& data, std::string_view where) {
  for (const Batch& batch : data) return batch.inputs();
  throw DataError(where, "there is no batch in the data");
}

Graph deployed_pass(Module& net, const std::vector<Tensor>& inputs) {
  if (Plugged(net).empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  const DeployedMode mode(net);
  return record_graph(net, inputs);
}

Graph float_pass(Module& net, const std::vector<Tensor>& inputs) {
  const FloatMode mode(net);
  return record_graph(net, inputs);
}

ProductValues values_of(const Product& product, const Graph& graph) {
  const GraphNode* found = nullptr;
  const GraphNode* last = nullptr;
  for (const GraphNode& node : graph.nodes()) {
    if (node.scope() == product.path && is_product(node)) found = last = &node;
    if (node.scope() == product.affine() && node.node->traits().is_batch_norm) last = &node;
  }
  if (found == nullptr) throw GraphError(product.path, "the layer did not run");
  const auto weight = static_cast<size_t>(found->node->traits().weight);
  return {found->inputs[0], found->inputs[weight], last->output};
}

ChannelMeans channel_means(Module& net,
                           const DataLoader& data,
                           const std::vector<Product>& products,
                           Graph (*pass)(Module&, const std::vector<Tensor>&)) {
  const DefaultRounding rounding;
  ChannelMeans means;
  std::map<std::string, int64_t> rows;
  for (const Batch& batch : data) {
    const Graph graph = pass(net, batch.inputs());
    for (const Product& product : products) {
      const Tensor output = values_of(product, graph).output;
      const Floats y = output.floats();
      std::vector<double>& sums = means[product.path];
      sums.resize(static_cast<size_t>(output.dim(output.rank() - 1)));
      for (int64_t i = 0; i < y.size(); ++i)
        sums[static_cast<size_t>(i) % sums.size()] += static_cast<double>(y[i]);
      rows[product.path] += y.size() / std::ssize(sums);
    }
  }
  if (rows.empty()) throw DataError("channel_means", "there is no batch");
  for (auto& [path, sums] : means) {
    for (double& sum : sums) sum /= static_cast<double>(rows[path]);
  }
  return means;
}

}  // namespace quantrain::quant
