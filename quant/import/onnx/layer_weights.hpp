#pragma once

#include <string>
#include <unordered_map>

#include "layers/onnx/importer.hpp"
#include "quant/import/onnx/float_graph.hpp"
#include "quant/import/onnx/place.hpp"

namespace quantrain::onnx {

/// For each value of the graph that constants only move: the codes of FloatGraph::weights that it
/// comes from.
std::unordered_map<std::string, const WeightCodes*> origins_of(const FloatGraph& graph,
                                                               const Graph& nodes);

/// The parameters of a layer's weights. scales: a layer like it whose weights are their own scales.
/// Says what the problem is if weights of an output do not share a scale.
LayerWeights layer_weights(const WeightCodes& codes, const Module& scales);
/// Says what the problem is if the layer's weights are not codes times these scales.
void check_codes(LayerWeights& weights, const Module& layer);

}  // namespace quantrain::onnx
