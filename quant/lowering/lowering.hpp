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
  std::vector<int> nodes;  ///< for each value, the node of the graph that gives the same integers
  std::vector<PlanRow> rows;
  std::exception_ptr error;  ///< the first error, of a row or the whole program; null if none
};

/// Lowers the graph of a prepared network, recorded over `inputs` in deployed mode: collects the
/// operations that the simulation ran. If a layer has no integer form, its row says why.
/// Lowered::error holds the first error; lower() does not throw it.
Lowered lower(const Graph& graph, const std::vector<Tensor>& inputs);

/// What a lowering rule can ask about the graph, and how it adds its steps.
class LoweringContext {
 public:
  virtual ~LoweringContext() = default;
  /// Name of the layer in the program and in messages: the node's scope, or the node's type if it
  /// has no scope.
  static std::string name_of(const GraphNode& node);
  /// Whether input i of the node depends on the network's inputs. Weights, and values computed from
  /// weights alone, do not.
  virtual bool is_data(const GraphNode& node, size_t i) const = 0;
  /// Position in Program::values of the value that input i reads. Throws: GraphError naming the
  /// layer if that value has no integer form or is not quantized.
  virtual int codes(const GraphNode& node, size_t i) const = 0;
  /// Adds the operation as a step; its output is the node's output, which holds codes.
  /// Throws: GraphError naming the layer if the node's output does not hold codes, or if the first
  /// axis of that output is not the batch; QuantError if the codes are per channel or have more
  /// than 8 bits; what integer::validate() throws. If the operation takes more or fewer inputs than
  /// inputs.size(), throws what Node::refuse_integers() throws.
  virtual void emit(const GraphNode& node,
                    integer::Operation operation,
                    std::vector<int> inputs) = 0;
};

/// Lowers one node: calls emit() or throws.
using LoweringRule = std::function<void(LoweringContext& context, const GraphNode& node)>;
/// Registers a rule for nodes of this type, whose output must hold codes. A node needs a rule if
/// its codes do not name the integer operation that computed them (Codes::operation), or if it is
/// deployed as another operation with equal results. Do not call this while a network is being
/// lowered.
/// Throws: GraphError if the rule is null.
void register_lowering(std::string type, LoweringRule rule);

}  // namespace quantrain::quant
