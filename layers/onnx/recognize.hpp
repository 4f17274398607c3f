#pragma once

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// The graph with one operator in place of several that together compute a known function of one
/// element: GELU (with erf or tanh), x * sigmoid(x), HardSwish, HardSigmoid, Mish, Softplus. Each
/// exporter writes these in several ways, so they are recognized by their values: nodes whose
/// result depends on one value only, through functions of one element and constants of one number,
/// are computed at some points and compared with the known functions there. A network then has one
/// layer for the function, which deploys as one table. Nodes that only the replaced ones read
/// remain; the importer walks from the outputs and does not meet them.
Graph recognize(const Graph& graph);

}  // namespace quantrain::onnx
