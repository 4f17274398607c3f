#pragma once

#include <exception>
#include <string>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "framework/integer/program.hpp"

namespace quantrain::quant {

/// A row of the plan: what one layer is converted to.
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
  integer::Program program;
  std::vector<int> nodes;  ///< for each value, the node of the graph that gives the same integers
  std::vector<PlanRow> rows;
  std::exception_ptr error;  ///< the first error, of a row or the whole program; null if none
};

/// Lowers the graph of a prepared network, recorded over `inputs` in deployed mode: collects the
/// operations that the simulation ran. If a layer has no integer form, its row says why.
/// Lowered::error holds the first error; lower() does not throw it.
Lowered lower(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace quantrain::quant
