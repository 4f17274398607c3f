#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
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
  std::vector<PlanRow> rows;
  std::exception_ptr error;  ///< of the first row with a reason
};

/// Lowers the graph of a prepared network, recorded over `inputs` in deployed mode: collects the
/// operations that the simulation ran. Does not throw for a layer that has no integer form: the row
/// says why.
Lowered lower(const Graph& graph, const std::vector<Tensor>& inputs);

/// A rule's view of the graph, and the place for its steps.
class LoweringContext {
 public:
  virtual ~LoweringContext() = default;
  /// Name of the resulting layer, also in messages: the node's scope, or its type.
  static std::string name_of(const GraphNode& node);
  /// Whether input i of the node depends on the network's inputs; weights and what is computed from
  /// them do not.
  virtual bool is_data(const GraphNode& node, size_t i) const = 0;
  /// The value of input i. Throws: GraphError naming the layer if it holds no codes (yet).
  virtual int codes(const GraphNode& node, size_t i) const = 0;
  /// Adds the operation as a step; its output is the node's output, which holds codes.
  /// Throws: GraphError naming the layer if the node's output is not codes; as integer::validate().
  virtual void emit(const GraphNode& node,
                    integer::Operation operation,
                    std::vector<int> inputs) = 0;
};

/// Lowers one node, by a call of emit() or an error.
using LoweringRule = std::function<void(LoweringContext& context, const GraphNode& node)>;
/// Registers a rule that lowers nodes of this type, whose output is codes. Needed for an operation
/// that does not say what it ran on integers (Codes::operation), or is to be deployed as other
/// operations with equal results. Do not call it while a network is lowered.
void register_lowering(std::string type, LoweringRule rule);

}  // namespace quantrain::quant
