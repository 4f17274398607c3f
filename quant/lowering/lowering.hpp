#pragma once

#include <exception>
#include <string>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "quant/integer/integer_model.hpp"

namespace quantrain::quant {

/// What becomes of one layer: a row of the plan.
struct PlanRow {
  std::string name{};
  std::string operation{};  ///< type of the recorded node
  std::string kernel{};     ///< empty if it cannot be lowered
  int weight_bits = 0;      ///< 0: no weights
  int output_bits = 0;      ///< 32 for accumulators
  int64_t accumulator_bound = 0;
  std::string folded{};  ///< paths of the batch norm, activation or reshape that were fused into it
  std::string reason{};  ///< why it cannot be lowered; empty if it can
};

struct Lowered {
  IntegerModel::Parts model;
  std::vector<PlanRow> rows;
  std::exception_ptr error;  ///< of the first row with a reason
};

/// Lowers the graph of a prepared network, recorded over `input`, by one rule for each type of
/// node. Does not throw for a layer that has no integer form: the row says why.
Lowered lower(const Graph& graph, const Tensor& input);

}  // namespace quantrain::quant
