#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "quant/integer/integer_layer.hpp"

namespace quantrain::quant {

/// One step of the deployed network.
struct LoweredLayer {
  std::string name;  ///< path of the layer whose result this is; the output slot's owner
  std::shared_ptr<const IntegerLayer> layer;
  std::vector<int> inputs;  ///< ids of values; 0 is the network's input
  int output = 0;
  int node =
      0;  ///< index in the recorded graph of the node that holds the same codes, or accumulators
};

/// What becomes of one layer: a row of the plan.
struct PlanRow {
  std::string name{};
  std::string operation{};  ///< type of the recorded node
  std::string kernel{};     ///< empty if it cannot be lowered
  int weight_bits = 0;      ///< 0: no weights
  int output_bits = 0;      ///< 32 for accumulators
  int64_t accumulator_bound = 0;
  std::string folded{};  ///< paths of the batch norm and activation that were fused into it
  std::string reason{};  ///< why it cannot be lowered; empty if it can
};

struct Lowered {
  Shape input_shape;  ///< of one sample
  QParams input_params;
  int input_node = 0;  ///< index in the recorded graph of its FakeQuantize
  std::vector<LoweredLayer> layers;
  int output = 0;  ///< id of the result
  std::vector<PlanRow> rows;
  std::exception_ptr error;  ///< of the first row with a reason
};

/// Lowers the graph of a prepared network, recorded over `input`, by one rule for each type of
/// node. Does not throw for a layer that has no integer form: the row says why.
Lowered lower(const Graph& graph, const Tensor& input);

}  // namespace quantrain::quant
