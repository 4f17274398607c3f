#include "quant/training/prepare.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "framework/core/error.hpp"
#include "layers/evaluation_mode.hpp"
#include "quant/analysis/overflow.hpp"
#include "quant/training/switches.hpp"

namespace quantrain::quant {
namespace {

/// Operations whose result gets a FakeQuantize (behind what is fused with them), and the layers
/// that run them.
struct Rule {
  const char* layer;
  bool has_weights;
};
const std::multimap<std::string_view, Rule> kRules = {{"conv2d", {"Conv2d", true}},
                                                      {"linear", {"Linear", true}},
                                                      {"add", {"Add", false}},
                                                      {"concat", {"Concat", false}},
                                                      {"avg_pool2d", {"AvgPool2d", false}},
                                                      {"avg_pool2d", {"GlobalAvgPool2d", false}}};
const std::map<std::string_view, const char*> kFused = {
    {"batch_norm2d", "BatchNorm2d"}, {"relu", "ReLU"}, {"relu6", "ReLU6"}};

/// One FakeQuantize to be, with what it closes.
struct Site {
  Module* layer = nullptr;  ///< runs the operation
  std::string path;
  const LayerConfig* config = nullptr;
  bool has_weights = false;
  Weights weights;  ///< the layer's own
  BatchNorm2d* folded = nullptr;
  std::string folded_path;
  Module* last = nullptr;     ///< the end of what is fused
  bool gives_logits = false;  ///< is the output, or reshaped to it
};

class Survey {
 public:
  Survey(Module& net, const Graph& graph, const Tensor& input, const QConfig& config)
      : graph_(graph), config_(config) {
    for (const NamedModule& entry : net.named_modules()) modules_.emplace(entry.name, entry.module);
    check_types();
    for (const GraphNode& node : graph.nodes()) ++runs_[{node.scope(), node.type()}];
    std::vector<const GraphNode*> data;  // the others are constants
    const std::vector<bool> depends = graph.dependents(input);
    for (const GraphNode& node : graph.nodes()) {
      if (depends[static_cast<size_t>(node.index)]) data.push_back(&node);
    }
    for (const GraphNode* node : data) {
      if (kRules.count(node->type()) != 0) add_site(*node);
    }
    for (const auto& [path, layer] : config.layers) check_has_site(path);
    for (const GraphNode* node : data) {
      if (node->type() == "batch_norm2d" && folded_.count(node->index) == 0)
        refuse_batch_norm(*node);
    }
  }

  const std::vector<Site>& sites() const { return sites_; }

 private:
  void check_types() const {
    for (const auto& [type, layer] : config_.types) {
      std::ostringstream known;
      bool found = false;
      for (const auto& [operation, rule] : kRules) {
        known << ' ' << rule.layer;
        found = found || type == rule.layer;
      }
      if (!found)
        throw QuantError(
            "QConfig", "no layers of type \"", type, "\" are quantized; known:", known.str());
    }
  }

  void check_has_site(const std::string& path) const {
    std::ostringstream known;
    for (const Site& site : sites_) {
      if (site.path == path) return;
      known << ' ' << site.path;
    }
    throw QuantError("QConfig",
                     "layer \"",
                     path,
                     modules_.count(path) == 0 ? "\" does not exist" : "\" has nothing to quantize",
                     "; layers to quantize:",
                     known.str());
  }

  // The layer that ran a node, whose slots are to be filled; the node's scope names it, and its
  // type says that the node is its own.
  Module& layer_of(const GraphNode& node, const std::vector<const char*>& types) const {
    const auto found = modules_.find(node.scope());
    const bool own =
        found != modules_.end() && std::any_of(types.begin(), types.end(), [&](const char* type) {
          return found->second->type() == type;
        });
    if (!own) {
      throw GraphError(node.scope().empty() ? "network" : node.scope(),
                       "operation ",
                       node.type(),
                       " has no place for a FakeQuantize: use the layer ",
                       types[0]);
    }
    if (runs_.at({node.scope(), node.type()}) > 1) {
      throw GraphError(
          node.scope(),
          "the layer runs twice in one pass and would need two ranges: make two layers; they "
          "may share their parameters");
    }
    return *found->second;
  }

  const GraphNode* sole_consumer(const GraphNode& node) const {
    return node.consumers.size() == 1 && !is_output(node) ? &graph_.node(node.consumers[0])
                                                          : nullptr;
  }

  bool is_output(const GraphNode& node) const {
    const auto& outputs = graph_.outputs();
    return std::any_of(
        outputs.begin(), outputs.end(), [&](const Tensor& t) { return t == node.output; });
  }

  bool gives_logits(const GraphNode& node) const {
    const GraphNode* end = &node;
    for (const GraphNode* next = sole_consumer(*end); next != nullptr; next = sole_consumer(*end)) {
      if (next->type() != "flatten" && next->type() != "reshape") break;
      end = next;
    }
    return is_output(*end);
  }

  void add_site(const GraphNode& node) {
    std::vector<const char*> types;
    const auto [first, last] = kRules.equal_range(node.type());
    for (auto it = first; it != last; ++it) types.push_back(it->second.layer);
    Site site;
    site.layer = &layer_of(node, types);
    site.path = node.scope();
    site.has_weights = first->second.has_weights;
    site.config = &config_.of(site.layer->type(), site.path);
    site.last = site.layer;
    if (site.has_weights) {
      site.weights = {node.inputs[1], node.inputs[2]};
      const int64_t length = node.inputs[1].elements() / node.inputs[1].dim(0);
      if (length > kLongestReduction) {
        throw QuantError(site.path,
                         "sums of ",
                         length,
                         " products are longer than ",
                         kLongestReduction,
                         ": an accumulator could overflow");
      }
    }
    const GraphNode* end = &node;
    const GraphNode* next = sole_consumer(*end);
    if (node.type() == "conv2d" && next != nullptr && next->type() == "batch_norm2d") {
      site.folded = dynamic_cast<BatchNorm2d*>(&layer_of(*next, {"BatchNorm2d"}));
      if (site.folded == nullptr) {
        throw GraphError(next->scope(), "the layer says that it is a BatchNorm2d, and is none");
      }
      site.folded_path = next->scope();
      site.last = site.folded;
      folded_.insert(next->index);
      end = next;
      next = sole_consumer(*end);
    }
    if (next != nullptr && (next->type() == "relu" || next->type() == "relu6")) {
      site.last = &layer_of(*next, {kFused.at(next->type())});
      end = next;
    }
    site.gives_logits = gives_logits(*end);
    sites_.push_back(site);
  }

  void refuse_batch_norm(const GraphNode& node) const {
    const int producer = node.producers[0];
    if (producer != GraphNode::kLeaf && graph_.node(producer).type() == "conv2d") {
      throw GraphError(node.scope(),
                       "the batch norm cannot be folded: the output of ",
                       graph_.node(producer).scope(),
                       " has another consumer");
    }
    throw GraphError(node.scope(),
                     "the batch norm cannot be folded: no convolution is in front of it");
  }

  const Graph& graph_;
  const QConfig& config_;
  std::map<std::string, Module*> modules_;
  /// Nodes of each scope and type: how often a layer runs.
  std::map<std::pair<std::string_view, std::string_view>, int> runs_;
  std::set<int> folded_;
  std::vector<Site> sites_;
};

enum class Purpose { kTraining, kCalibration };

template <class M>
std::shared_ptr<M> plugged(std::shared_ptr<M> slot, const Module& layer) {
  slot->train(layer.training());
  return slot;
}

std::shared_ptr<FakeQuantize> activation_slot(const Site& site,
                                              const QConfig& config,
                                              Purpose purpose) {
  ActivationConfig activation = site.config->activation;
  if (site.gives_logits) activation.bits = 8;
  // Many codes have room for outliers, few have not.
  const ObserverKind observer = purpose == Purpose::kTraining ? ObserverKind::kMovingAverage
                                : activation.bits < 8         ? ObserverKind::kPercentile
                                                              : ObserverKind::kMinMax;
  auto slot = std::make_shared<FakeQuantize>(
      activation.fake_quantize(config.simulation, {.kind = observer}));
  slot->set_observing_in_eval(purpose == Purpose::kCalibration);
  slot->enable_fake_quantize(purpose == Purpose::kTraining);
  return plugged(std::move(slot), *site.last);
}

void plug(const Site& site, const QConfig& config, Purpose purpose) {
  const bool accumulators_out = site.gives_logits && site.has_weights && config.output_bits == 32 &&
                                (site.last == site.layer || site.last == site.folded);
  std::shared_ptr<Folding> folding;
  if (site.folded != nullptr) {
    folding = std::make_shared<Folding>(site.folded_path, *site.folded);
    site.folded->slots().body = plugged(std::make_shared<FoldedBatchNorm>(folding), *site.folded);
  }
  if (site.has_weights && site.config->quantize) {
    WeightConfig weight = site.config->weight;
    if (accumulators_out) weight.per_channel = false;  // one scale: argmax needs no float
    auto slot = std::make_shared<WeightQuantizer>(weight, site.weights, folding);
    slot->set_simulation(config.simulation);
    slot->enable_fake_quantize(purpose == Purpose::kTraining);
    site.layer->slots().weight = plugged(std::move(slot), *site.layer);
  }
  if (!accumulators_out && site.config->quantize) {
    site.last->slots().output = activation_slot(site, config, purpose);
  }
}

void prepare(Module& net, const Tensor& example, const QConfig& config, Purpose purpose) {
  validate(config);
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    if (slots.input || slots.weight || slots.body || slots.output) {
      throw GraphError(entry.name.empty() ? "network" : entry.name,
                       "the network is prepared already");
    }
  }
  const Tensor input = example.detach();
  const Graph graph = record_graph(net, input);
  const Survey survey(net, graph, input, config);
  if (survey.sites().empty()) throw GraphError("prepare", "the network has no layer to quantize");

  const QType input_type{.bits = 8, .is_signed = false, .narrow = false};
  const ScaleZero declared =
      choose_params(config.input_range, input_type, QScheme::kAffine, "QConfig.input_range");
  auto input_slot = std::make_shared<FakeQuantize>(
      QParams{input_type, -1, {declared.scale}, {declared.zero_point}});
  input_slot->set_simulation(config.simulation);
  input_slot->enable_fake_quantize(purpose == Purpose::kTraining);
  net.slots().input = plugged(std::move(input_slot), net);
  for (const Site& site : survey.sites()) plug(site, config, purpose);
}

}  // namespace

Graph record_graph(Module& net, const Tensor& example) {
  if (example.rank() < 2 || example.dim(0) < 1) {
    throw ShapeError(
        "prepare", "the example is a batch [N, ...] of at least one sample, got ", example.shape());
  }
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  const Recording recording;
  return Graph(net(example));
}

void prepare_qat(Module& net, const Tensor& example, const QConfig& config) {
  prepare(net, example, config, Purpose::kTraining);
}

void prepare_ptq(Module& net, const Tensor& example, const QConfig& config) {
  prepare(net, example, config, Purpose::kCalibration);
}

}  // namespace quantrain::quant
