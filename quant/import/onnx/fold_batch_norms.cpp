#include <algorithm>
#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/core/rounding.hpp"
#include "layers/network/layer_type.hpp"
#include "quant/import/onnx/place.hpp"
#include "quant/prepare/batch_norm_folding.hpp"

namespace quantrain::onnx {
namespace {

/// The tensor of this name among a layer's members; undefined if there is none.
Tensor member(const LayerMembers& members, std::string_view name) {
  for (const NamedState& entry : members.state) {
    if (entry.name == name) return entry.tensor;
  }
  return {};
}

void set_member(LayerMembers& members, const char* name, const Tensor& tensor) {
  for (NamedState& entry : members.state) {
    if (entry.name != name) continue;
    entry.tensor = tensor;
    return;
  }
  members.state.push_back({name, tensor});
}

/// Folds a batch norm into a layer and its weights' scales.
void fold(NetworkStep& product, const BatchNorm& norm, LayerWeights& weights) {
  const DefaultRounding rounding;
  const NoGrad no_grad;
  LayerMembers members = members_of(*product.layer);
  const Weights own{member(members, "weight"), member(members, "bias")};
  const quant::Folding folding(product.name, norm);
  const Weights folded = quant::fold_batch_norm(own, folding);
  const quant::FoldedBias bias = quant::fold_bias(own, folding);
  set_member(members, "weight", folded.weight.detach());
  set_member(members, "bias", folded.bias.detach());
  product.layer = make_layer(product.layer->type(), members);

  QParams& params = weights.params;
  const auto channels = static_cast<size_t>(bias.factor.elements());
  const Floats factor = bias.factor.floats();
  const QParams before = params;
  params.axis = 0;
  params.scale.clear();
  for (size_t c = 0; c < channels; ++c) {
    const float scale = before.scale[before.scale.size() == 1 ? 0 : c];
    params.scale.push_back(scale * std::abs(factor[static_cast<int64_t>(c)]));
  }
  params.zero_point.assign(channels, 0);
}

}  // namespace

void fold_batch_norms(QuantizedParts& net) {
  NetworkParts& parts = net.parts;
  std::map<std::string, int> readers;
  std::map<std::string, NetworkStep*> by_name;
  for (NetworkStep& step : parts.steps) {
    by_name[step.name] = &step;
    for (const std::string& input : step.inputs) ++readers[input];
  }
  for (const std::string& output : parts.outputs) ++readers[output];
  std::map<std::string, std::string> folded;  // batch norms and their products
  for (const NetworkStep& step : parts.steps) {
    const auto* const norm = dynamic_cast<const BatchNorm*>(step.layer.get());
    if (norm == nullptr) continue;
    const std::string& product = step.inputs[0];
    const auto weights = net.weights.find(product);
    if (weights == net.weights.end() || !weights->second.problem.empty() || readers[product] != 1)
      continue;
    const Tensor own = member(members_of(*by_name.at(product)->layer), "weight");
    if (own.dim(0) != norm->gamma().elements()) continue;
    fold(*by_name.at(product), *norm, weights->second);
    folded[step.name] = product;
  }
  std::erase_if(parts.steps, [&](const NetworkStep& step) { return folded.contains(step.name); });
  const auto rename = [&](std::string& name) {
    if (const auto found = folded.find(name); found != folded.end()) name = found->second;
  };
  for (NetworkStep& step : parts.steps)
    std::for_each(step.inputs.begin(), step.inputs.end(), rename);
  std::for_each(parts.outputs.begin(), parts.outputs.end(), rename);
}

}  // namespace quantrain::onnx
