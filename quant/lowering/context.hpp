#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quant/lowering/lowering.hpp"

// What the lowering rules share; not part of the installed package.
namespace quantrain::quant {

/// A value of the deployed network, while its graph is lowered. Either it exists (id of a buffer),
/// or it waits for the parameters of its output (pending).
struct LoweredValue {
  int id = -1;
  Shape shape;     ///< of one sample
  QParams params;  ///< of the codes, once there is an id
  std::shared_ptr<IntegerLayer> pending;
  std::vector<int> pending_inputs;
  Activation activation = Activation::kNone;  ///< to be fused behind pending
  bool reshaped = false;                      ///< while pending: only the network's output may be

  bool is_codes() const { return id >= 0; }
};

/// What a rule sees of the graph and of what was lowered so far.
class LoweringContext {
 public:
  LoweringContext(const Graph& graph, const Tensor& input)
      : graph_(graph),
        input_(input),
        values_(graph.nodes().size()),
        data_(graph.dependents(input)) {}

  const Graph& graph() const { return graph_; }
  /// Whether input i of the node depends on the network's input; weights and what is computed from
  /// them do not.
  bool is_data(const GraphNode& node, size_t i) const;
  /// Input i as codes. Throws: GraphError naming the layer if it holds no codes (yet).
  const LoweredValue& codes(const GraphNode& node, size_t i) const;
  /// Input i in whatever state. Throws: GraphError if it could not be lowered.
  const LoweredValue& value(const GraphNode& node, size_t i) const;
  /// Name in messages and of the layer to be: the node's scope, or its type.
  static std::string name_of(const GraphNode& node);

  /// Declares the network's input, of which node is the FakeQuantize.
  LoweredValue input(const GraphNode& node, const QParams& params);
  /// Makes the layer a step of the network; returns its output.
  LoweredValue emit(const GraphNode& node,
                    std::shared_ptr<IntegerLayer> layer,
                    std::vector<int> inputs);

 private:
  friend class Lowering;

  const Graph& graph_;
  const Tensor& input_;
  std::vector<std::shared_ptr<LoweredValue>>
      values_;  // of each node; null: not data, or not lowered
  std::vector<bool> data_;
  Lowered result_;
  int next_id_ = 1;
};

/// One rule for each type of node, in a file of its own, listed in rules.inc.
namespace rules {
#define QUANTRAIN_LOWERING_RULE(name) \
  LoweredValue name(LoweringContext& context, const GraphNode& node);
#include "quant/lowering/rules.inc"
#undef QUANTRAIN_LOWERING_RULE
}  // namespace rules

}  // namespace quantrain::quant
