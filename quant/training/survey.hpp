#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "layers/batch_norm.hpp"
#include "layers/module.hpp"
#include "quant/training/qconfig.hpp"

namespace quantrain::quant {

/// A place where a FakeQuantize is to be plugged in, with the operations whose range it closes.
struct Site {
  Module* layer = nullptr;  ///< runs the operation
  std::string path;
  const LayerConfig* config = nullptr;
  bool has_weights = false;
  Weights weights;                  ///< the layer's own
  BatchNorm* batch_norm = nullptr;  ///< the layer itself, or folded into it
  std::string batch_norm_path;
  Module* last = nullptr;  ///< the end of what is fused
  std::string last_path;
  bool gives_output = false;     ///< is the output, or reshaped to it
  bool gives_logits = false;     ///< is the output, or what a closing softmax takes
  std::optional<Range> range{};  ///< of the operation's results, where it is known
};

/// Finds the places to quantize in a recorded network, and refuses operations that cannot be
/// quantized, by the rules of prepare_qat and prepare_ptq.
class Survey {
 public:
  /// Surveys a network's graph over these inputs, recorded as by record_graph(). Network, graph,
  /// inputs and configuration must outlive the sites.
  /// Throws: GraphError or QuantError as prepare_qat.
  Survey(Module& net, const Graph& graph, const std::vector<Tensor>& inputs, const QConfig& config);

  /// In the order in which they run.
  const std::vector<Site>& sites() const& { return sites_; }
  std::vector<Site> sites() && { return std::move(sites_); }

 private:
  bool is_data(const GraphNode& node, size_t i) const;

  // The network, or the layer: of an operation that runs in forward() itself, its class.
  std::string place_of(const GraphNode& node) const;

  // An operation that makes a new tensor and does not record it cuts the graph.
  void check_recorded() const;
  [[noreturn]] void refuse_without_sites(const std::vector<const GraphNode*>& data) const;

  // An operation that runs where there is no slot for what it needs.
  [[noreturn]] void refuse_place(const GraphNode& node) const;
  void check_has_type(const std::string& type) const;
  void check_has_site(const std::string& path) const;

  // Whether the configuration leaves what this layer runs in float: it may run several operations.
  bool stays_float(const GraphNode& node) const;

  // The layer whose slots are to be filled: one that runs this operation and nothing else, so that
  // its slots stand directly before and after it.
  Module& layer_of(const GraphNode& node) const;
  BatchNorm& batch_norm_of(const GraphNode& node) const;
  const GraphNode* sole_consumer(const GraphNode& node) const;
  bool is_output(const GraphNode& node) const;

  // Whether only views lie between the node and an output, and nothing else reads the node.
  bool gives_output(const GraphNode& node) const;
  // The same, or views and operations of a known range, such as a softmax.
  bool gives_logits(const GraphNode& node) const;
  bool leads_out(const GraphNode& node, bool (*may_follow)(const QuantizationTraits&)) const;
  void add_site(const GraphNode& node);

  // A reshape moves nothing: what follows it is fused as if it came before.
  const GraphNode* behind_views(const GraphNode* node) const;

  const Module& net_;
  const Graph& graph_;
  const std::vector<Tensor>& inputs_;
  const QConfig& config_;
  std::vector<bool> depends_;  ///< of each node: on an input
  std::map<std::string, Module*> modules_;
  /// Nodes of each scope, and of each scope and type: how often a layer runs.
  std::map<std::string_view, int> runs_;
  std::map<std::pair<std::string_view, std::string_view>, int> runs_of_type_;
  std::set<int> folded_;
  std::vector<Site> sites_;
};

}  // namespace quantrain::quant
