#pragma once

#include <exception>
#include <string>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "framework/integer/program.hpp"
#include "quant/lowering/output_codes.hpp"
#include "quant/prepare/refusals.hpp"

namespace quantrain::quant {

/// An operand of a concatenation or addition. Its codes are rescaled to the output's scale, which
/// all operands share; so an operand with a much smaller range than the output keeps few of its
/// codes.   docs/quantization.md (11)
struct PlanOperand {
  std::string name{};  ///< path of the layer that computes it, or the input's name
  int bits = 0;        ///< of its codes
  Range range{};       ///< real values of its lowest and highest code
  /// log2(output's scale / operand's scale), at least 0. If it is above `bits`, all values of the
  /// operand get the same code, or two neighbouring ones.
  double lost_bits = 0.0;
};

/// A row of the plan: what one layer is converted to.
struct PlanRow {
  std::string name{};
  std::string operation{};  ///< type of the recorded node
  std::string kernel{};     ///< empty if it cannot be lowered
  int weight_bits = 0;      ///< 0: no weights
  int output_bits = 0;      ///< 32 for accumulators
  /// What lower_bits() (quant/methods/gradual_bits.hpp) will bring these bits down to; 0: they
  /// stay.
  int last_weight_bits = 0;
  int last_output_bits = 0;
  int64_t accumulator_bound = 0;
  std::string folded{};  ///< paths of the batch norm, activation or reshape that were fused into it
  std::string closed_by{};  ///< path of the layer whose output slot may give the output's codes
  std::string reason{};     ///< why it cannot be lowered; empty if it can
  std::vector<PlanOperand> operands{};    ///< of a concatenation or addition
  std::vector<ChannelCodes> few_codes{};  ///< of an output of the network: channels that get few
};

struct Lowered {
  integer::Program program;
  std::vector<int> nodes;  ///< for each value, the node of the graph that gives the same integers
  std::vector<PlanRow> rows;
  std::exception_ptr error;  ///< the first error, of a row or the whole program; null if none
  /// The errors that no range, weight or number of bits can remove, without those that follow from
  /// an error of an operation before.
  std::vector<NoIntegerForm> refused{};
};

/// Lowers the graph of a prepared network, recorded over `inputs` in deployed mode: collects the
/// operations that the simulation ran. If a layer has no integer form, its row says why.
/// Lowered::error holds the first error; lower() does not throw it.
Lowered lower(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace quantrain::quant
