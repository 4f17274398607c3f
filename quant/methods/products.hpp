#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "framework/data/loader.hpp"
#include "quant/prepare/scopes.hpp"

// The products of a prepared network, and what they compute on data. For methods that go from layer
// to layer.
namespace quantrain::quant {

/// A convolution or linear layer of a prepared network whose weights are quantized.
struct Product {
  std::string path;
  Module* layer = nullptr;
  WeightQuantizer* slot = nullptr;
  Activation activation = Activation::kNone;  ///< fused with it
  /// Why its weight must not be changed: another layer uses it, too, the layer computes it from its
  /// parameters, or it passes a weight function. Empty: it may be changed.
  std::string fixed{};

  /// The layer that ends the product's real values: the batch norm that is folded, or itself.
  const std::string& affine() const& {
    return slot->folding() != nullptr ? slot->folding()->path : path;
  }
  /// The factor [O] and the bias [O] of a pass in evaluation; the factor is undefined if no batch
  /// norm is folded, and the bias if there is neither a bias nor a batch norm.
  FoldedBias folded() const;
  /// The weight times the factor.   docs/quantization.md (15)
  std::vector<float> folded_weight() const;
  /// Sets the own weight so that folded_weight() is `values`, as far as floats go.
  void set_folded_weight(std::span<const float> values) const;
  /// The parameter [O] that moves the outputs: the batch norm's bias, or the layer's. Undefined if
  /// there is none.
  Tensor shift() const;
};

/// The products of a network that is calibrated, in the order in which they run.
/// Throws: GraphError if the network is not prepared; QuantError if it has no quantized weights;
/// what running the network throws.
std::vector<Product> products_of(Module& net, const std::vector<Tensor>& examples);

/// Sets `fixed` of each product of a network from their paths, layers and slots.
void find_fixed(std::vector<Product>& products);

/// The inputs of the first batch.   Throws: DataError naming `where` if there is no batch.
std::vector<Tensor> first_inputs(const DataLoader& data, std::string_view where);

/// A recorded pass in DeployedMode, or in FloatMode.
Graph deployed_pass(Module& net, const std::vector<Tensor>& inputs);
Graph float_pass(Module& net, const std::vector<Tensor>& inputs);

/// What a product reads and computes in a recorded pass.
struct ProductValues {
  Tensor input;   ///< x
  Tensor weight;  ///< as the product reads it: codes in a deployed pass
  Tensor output;  ///< with bias and batch norm, before any activation: [..., O]
};
/// Throws: GraphError if the product is not in the graph.
ProductValues values_of(const Product& product, const Graph& graph);

/// For each product, by its path: the mean of each output channel, before any activation.
using ChannelMeans = std::map<std::string, std::vector<double>>;
/// Means over all batches of the loader. pass: deployed_pass or float_pass.
/// Throws: what the pass throws; DataError if there is no batch.
ChannelMeans channel_means(Module& net,
                           const DataLoader& data,
                           const std::vector<Product>& products,
                           Graph (*pass)(Module&, const std::vector<Tensor>&));

}  // namespace quantrain::quant
