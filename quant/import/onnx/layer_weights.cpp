#include "quant/import/onnx/layer_weights.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/rounding.hpp"
#include "layers/network/layer_type.hpp"

namespace quantrain::onnx {
namespace {

Tensor weight_of(const Module& layer) {
  for (const NamedState& entry : members_of(layer).state) {
    if (entry.name == "weight") return entry.tensor;
  }
  return {};
}

}  // namespace

std::unordered_map<std::string, const WeightCodes*> origins_of(const FloatGraph& graph,
                                                               const Graph& nodes) {
  std::unordered_map<std::string, const WeightCodes*> origins;
  for (const auto& [name, codes] : graph.weights) origins[name] = &codes;
  for (const Node& node : nodes.nodes) {
    for (const std::string& input : node.inputs) {
      const auto found = origins.find(input);
      if (found == origins.end()) continue;
      const WeightCodes* const codes = found->second;
      for (const std::string& output : node.outputs) origins.emplace(output, codes);
      break;
    }
  }
  return origins;
}

LayerWeights layer_weights(const WeightCodes& codes, const Module& scales) {
  LayerWeights weights{{codes.type, codes.per_channel ? 0 : -1, {}, {}}, codes.problem};
  const Tensor all = weight_of(scales);
  if (!weights.problem.empty() || !all.defined() || all.elements() == 0) return weights;
  const Floats values = all.floats();
  const int64_t inner = all.elements() / all.dim(0);
  for (int64_t c = 0; c < all.dim(0); ++c) {
    const float scale = std::abs(values[c * inner]);
    for (int64_t i = 0; i < inner; ++i) {
      if (std::abs(values[c * inner + i]) != scale)
        weights.problem = "a scale for each input channel: here each output channel has one";
    }
    if (!std::isnormal(scale)) weights.problem = "a scale that is not positive";
    weights.params.scale.push_back(scale);
  }
  const std::vector<float>& found = weights.params.scale;
  if (weights.params.axis < 0 &&
      std::all_of(found.begin(), found.end(), [&](float scale) { return scale == found[0]; }))
    weights.params.scale.resize(1);
  else
    weights.params.axis = 0;
  weights.params.zero_point.assign(weights.params.scale.size(), 0);
  return weights;
}

void check_codes(LayerWeights& weights, const Module& layer) {
  if (!weights.problem.empty()) return;
  const DefaultRounding rounding;
  const Tensor weight = weight_of(layer);
  const QParams& params = weights.params;
  for (const float scale : params.scale) {
    if (!std::isnormal(scale)) {
      weights.problem = "a scale that is not positive";
      return;
    }
  }
  const Floats values = weight.floats();
  const int64_t inner = weight.elements() / std::max<int64_t>(weight.dim(0), 1);
  for (int64_t i = 0; i < weight.elements(); ++i) {
    const auto c = params.scale.size() == 1 ? 0 : static_cast<size_t>(i / inner);
    // Scales and weights are float32: a few roundings keep a code of 8 bits within this distance.
    constexpr double kDistance = 1e-3;
    const double code = double{values[i]} / double{params.scale[c]};
    const double whole = std::nearbyint(code);
    if (!(std::abs(code - whole) <= kDistance) || whole < params.type.qmin() ||
        whole > params.type.qmax()) {
      weights.problem = "weights that are no codes of their type where the layer gets them";
      return;
    }
  }
}

}  // namespace quantrain::onnx
