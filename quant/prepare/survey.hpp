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
#include "quant/prepare/qconfig.hpp"

namespace quantrain::quant {

/// A place for a FakeQuantize: after an operation and all operations that are fused with it.
struct Site {
  Module* layer = nullptr;  ///< runs the operation
  std::string path;
  const LayerConfig* config = nullptr;
  bool has_weights = false;
  Weights weights;                  ///< those of the layer
  BatchNorm* batch_norm = nullptr;  ///< the layer itself, or the one folded into it, or null
  std::string batch_norm_path;
  Module* last = nullptr;  ///< the last of the fused layers
  std::string last_path;
  bool gives_output = false;     ///< its result is an output of the network, perhaps reshaped
  bool gives_logits = false;     ///< only views and softmax lie between it and outputs
  std::optional<Range> range{};  ///< range of the operation's results, if known
};

/// Finds the places to quantize in a recorded network, and refuses operations that cannot be
/// quantized, by the rules of prepare_qat and prepare_ptq.
class Survey {
 public:
  /// Surveys the graph that record_graph() returned for the network and these inputs. Network,
  /// graph, inputs and configuration must outlive the sites.
  /// Throws: GraphError or QuantError as prepare_qat, with all reasons.
  Survey(Module& net, const Graph& graph, const std::vector<Tensor>& inputs, const QConfig& config);

  /// The sites, in the order in which their operations run.
  const std::vector<Site>& sites() const& { return sites_; }
  std::vector<Site> sites() && { return std::move(sites_); }

  /// Whether the configuration leaves the layer at this path in float.
  bool leaves_in_float(const std::string& path) const;

 private:
  bool is_data(const GraphNode& node, size_t i) const;

  // For messages: the layer that runs the node, or the network if its own forward() does.
  std::string place_of(const GraphNode& node) const;

  // Throws if no output depends on an input. The cause is an operation that made a new tensor but
  // did not record it.
  void check_recorded() const;
  [[noreturn]] void refuse_without_sites(const std::vector<const GraphNode*>& data) const;

  // Adds the operation's site, if it needs one. Throws if the operation cannot be quantized.
  void survey(const GraphNode& node);
  // Whether the operation is that of a ReLU or ReLU6 for which the configuration has an entry. If
  // no other layer has fused it, it has a range of its own.
  bool has_own_entry(const GraphNode& activation) const;
  // Whether an operand other than weights does not depend on the network's inputs.
  bool has_constants(const GraphNode& node) const;
  // Throws if the operation has no integer form, as far as its traits and shapes say.
  void check_integer_form(const GraphNode& node) const;
  // Throws an error that says that there is no slot for the FakeQuantize that the operation needs.
  [[noreturn]] void refuse_place(const GraphNode& node) const;
  void check_has_type(const std::string& type) const;
  void check_has_site(const std::string& path) const;

  // Whether the node has no weights and is no batch norm, and the configuration leaves its layer in
  // float. Such a layer may run several operations.
  bool stays_float(const GraphNode& node) const;

  // The layer whose slots quantize this operation. It must run this operation once and otherwise
  // only views, so that its slots lie directly before and after the operation.
  Module& layer_of(const GraphNode& node) const;
  BatchNorm& batch_norm_of(const GraphNode& node) const;
  const GraphNode* sole_consumer(const GraphNode& node) const;
  /// Whether only an operation of the same layer that closes a range reads the result, perhaps
  /// after others that close none.
  bool leads_to_own(const GraphNode& node) const;
  bool is_output(const GraphNode& node) const;

  // Whether only views lie between the node and an output, and nothing else reads the node.
  bool gives_output(const GraphNode& node) const;
  // Whether only views and operations with a known range, such as a softmax, lie between the node
  // and the outputs that it leads to. The node may also be an output itself.
  bool gives_logits(const GraphNode& node) const;
  static void check_weights(const Site& site);
  void add_site(const GraphNode& node);

  // Skips views: follows sole consumers from `node` to the first node that is not a view. Returns
  // null if there is none. A view moves nothing, so the operation after it is fused as if the view
  // were not there.
  const GraphNode* behind_views(const GraphNode* node) const;

  const Module& net_;
  const Graph& graph_;
  const std::vector<Tensor>& inputs_;
  const QConfig& config_;
  std::vector<bool> depends_;  ///< whether each node depends on an input
  std::map<std::string, Module*> modules_;
  /// Number of nodes of each scope (without views), and of each scope and type. They tell how often
  /// a layer runs.
  std::map<std::string_view, int> runs_;
  std::map<std::pair<std::string_view, std::string_view>, int> runs_of_type_;
  std::set<int> fused_;  ///< batch norms and activations that belong to the site of another node
  std::vector<Site> sites_;
};

}  // namespace quantrain::quant
