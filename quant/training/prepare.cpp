#include "quant/training/prepare.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "layers/dry_run.hpp"
#include "layers/evaluation_mode.hpp"
#include "quant/training/scopes.hpp"

namespace quantrain::quant {
namespace {

/// One FakeQuantize to be, with what it closes.
struct Site {
  Module* layer = nullptr;  ///< runs the operation
  std::string path;
  const LayerConfig* config = nullptr;
  bool has_weights = false;
  Weights weights;  ///< the layer's own
  BatchNorm2d* folded = nullptr;
  std::string folded_path;
  Module* last = nullptr;  ///< the end of what is fused
  std::string last_path;
  bool gives_logits = false;  ///< is the output, or reshaped to it
};

class Survey {
 public:
  Survey(Module& net, const Graph& graph, const std::vector<Tensor>& inputs, const QConfig& config)
      : net_(net), graph_(graph), inputs_(inputs), config_(config) {
    for (const NamedModule& entry : net.named_modules()) modules_.emplace(entry.name, entry.module);
    for (const GraphNode& node : graph.nodes()) {
      ++runs_[node.scope()];
      ++runs_of_type_[{node.scope(), node.type()}];
    }
    depends_.assign(graph.nodes().size(), false);
    for (const Tensor& input : inputs) {
      const std::vector<bool> on_input = graph.dependents(input);
      for (size_t i = 0; i < depends_.size(); ++i) depends_[i] = depends_[i] || on_input[i];
    }
    check_recorded();
    std::vector<const GraphNode*> data;  // the others are constants
    for (const GraphNode& node : graph.nodes()) {
      if (depends_[static_cast<size_t>(node.index)]) data.push_back(&node);
    }
    for (const GraphNode* node : data) {
      if (node->node->traits().closes_range) add_site(*node);
    }
    if (sites_.empty()) refuse_without_sites(data);
    for (const auto& [path, layer] : config.layers) check_has_site(path);
    for (const auto& [type, layer] : config.types) check_has_type(type);
    for (const GraphNode* node : data) {
      if (node->node->traits().is_batch_norm && folded_.count(node->index) == 0)
        refuse_batch_norm(*node);
    }
  }

  const std::vector<Site>& sites() const { return sites_; }

 private:
  bool is_data(const GraphNode& node, size_t i) const {
    const Tensor& x = node.inputs[i];
    const auto same = [&](const Tensor& input) { return input.same_as(x); };
    if (!x.defined()) return false;
    return node.producers[i] == GraphNode::kLeaf ? std::any_of(inputs_.begin(), inputs_.end(), same)
                                                 : depends_[static_cast<size_t>(node.producers[i])];
  }

  // The network, or the layer: of an operation that runs in forward() itself, its class.
  std::string place_of(const GraphNode& node) const {
    return node.scope().empty() ? net_.label() : node.scope();
  }

  // An operation that makes a new tensor and does not record it cuts the graph.
  void check_recorded() const {
    const auto depends = [&](const Tensor& output) {
      const int last = graph_.producer(output);
      const auto same = [&](const Tensor& input) { return input.same_as(output); };
      return last == GraphNode::kLeaf ? std::any_of(inputs_.begin(), inputs_.end(), same)
                                      : bool{depends_[static_cast<size_t>(last)]};
    };
    const std::vector<Tensor>& outputs = graph_.outputs();
    if (std::any_of(outputs.begin(), outputs.end(), depends)) return;
    // The first that takes such a tensor.
    const auto reader =
        std::find_if(graph_.nodes().begin(), graph_.nodes().end(), [&](const GraphNode& node) {
          const Tensor x = node.inputs.empty() ? Tensor() : node.inputs[0];
          return x.defined() && x.node() == nullptr && !x.requires_grad() && x.rank() > 0 &&
                 x.dim(0) == inputs_[0].dim(0);
        });
    const bool found = reader != graph_.nodes().end();
    throw GraphError(
        found ? place_of(*reader) : net_.label(),
        found ? "what operation " : "the output",
        found ? reader->type() : "",
        found ? " reads" : "",
        " does not depend on the network's input in what was recorded: an operation in front made "
        "a new tensor without recording it; it has to end with return record<ItsNode>(y, {x}) "
        "(docs/adding_an_operation.md)");
  }

  [[noreturn]] void refuse_without_sites(const std::vector<const GraphNode*>& data) const {
    std::ostringstream types;
    for (const GraphNode* node : data) types << ' ' << node->type();
    throw GraphError(net_.label(),
                     "there is no layer to quantize among what it runs:",
                     types.str(),
                     "; those of Conv2d, Linear, Add, AvgPool2d, Concat and elementwise functions "
                     "are quantized");
  }

  // An operation that runs where there is no slot for what it needs.
  [[noreturn]] void refuse_place(const GraphNode& node) const {
    const std::string where = place_of(node);
    const QuantizationTraits traits = node.node->traits();
    const bool takes_data = traits.closes_range && traits.weight < 0;  // and no parameters
    for (size_t i = 0; takes_data && i < node.inputs.size(); ++i) {
      if (node.inputs[i].defined() && !is_data(node, i)) node.node->refuse_integers(where);
    }
    if (!traits.has_integer_form) node.node->refuse_integers(where);
    std::ostringstream operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].defined() && is_data(node, i))
        operands << (operands.tellp() == 0 ? " of " : " and ") << node.inputs[i].shape();
    }
    throw GraphError(where,
                     "operation ",
                     node.type(),
                     operands.str(),
                     node.scope().empty() ? " in its forward()" : "",
                     " has no place for a FakeQuantize: ",
                     traits.layer.empty() ? "run it in a layer of its own" : "use the layer ",
                     traits.layer,
                     ", registered by add(name, layer) in the constructor");
  }

  void check_has_type(const std::string& type) const {
    std::set<std::string_view> known;
    for (const Site& site : sites_) known.insert(site.layer->type());
    if (known.count(type) != 0) return;
    std::ostringstream list;
    for (const std::string_view name : known) list << ' ' << name;
    throw QuantError("QConfig",
                     "no layers of type \"",
                     type,
                     "\" are quantized in this network; those that are:",
                     list.str());
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

  // The layer whose slots are to be filled: one that runs this operation and nothing else, so that
  // its slots stand directly before and after it.
  Module& layer_of(const GraphNode& node) const {
    const auto found = modules_.find(node.scope());
    const QuantizationTraits traits = node.node->traits();
    const bool layer = found != modules_.end() && !found->second->has_children();
    const int runs = runs_of_type_.at({node.scope(), node.type()});
    const bool alone = runs_.at(node.scope()) == runs;
    if (!layer || !alone || (traits.weight >= 0 && !found->second->has_weight_slot())) {
      refuse_place(node);
    }
    if (runs > 1) {
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
        outputs.begin(), outputs.end(), [&](const Tensor& t) { return t.same_as(node.output); });
  }

  // Whether nothing but views stands between it and an output, and nothing else reads it.
  bool gives_logits(const GraphNode& node) const {
    const GraphNode* end = &node;
    for (const GraphNode* next = sole_consumer(*end); next != nullptr; next = sole_consumer(*end)) {
      if (!next->node->traits().is_view) break;
      end = next;
    }
    return is_output(*end) && end->consumers.empty();
  }

  void add_site(const GraphNode& node) {
    const QuantizationTraits traits = node.node->traits();
    Site site;
    site.layer = &layer_of(node);
    site.path = node.scope();
    site.has_weights = traits.weight >= 0;
    site.config = &config_.of(site.layer->type(), site.path);
    site.last = site.layer;
    site.last_path = site.path;
    if (site.has_weights) {
      const auto weight = static_cast<size_t>(traits.weight);
      site.weights = {node.inputs[weight], node.inputs[weight + 1]};
      const int64_t length = site.weights.weight.elements() / site.weights.weight.dim(0);
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
    if (traits.folds_batch_norm && next != nullptr && next->node->traits().is_batch_norm) {
      site.folded = dynamic_cast<BatchNorm2d*>(&layer_of(*next));
      if (site.folded == nullptr) {
        throw GraphError(next->scope(), "a batch norm that is no BatchNorm2d cannot be folded");
      }
      site.folded_path = next->scope();
      site.last = site.folded;
      site.last_path = site.folded_path;
      folded_.insert(next->index);
      end = next;
      next = sole_consumer(*end);
    }
    next = behind_views(next);
    if (next != nullptr && next->node->traits().is_activation) {
      site.last = &layer_of(*next);
      site.last_path = next->scope();
      end = next;
    }
    site.gives_logits = gives_logits(*end);
    sites_.push_back(site);
  }

  // A reshape moves nothing: what follows it is fused as if it came before.
  const GraphNode* behind_views(const GraphNode* node) const {
    while (node != nullptr && node->node->traits().is_view) node = sole_consumer(*node);
    return node;
  }

  void refuse_batch_norm(const GraphNode& node) const {
    const int producer = node.producers[0];
    if (producer != GraphNode::kLeaf && graph_.node(producer).node->traits().folds_batch_norm) {
      throw GraphError(node.scope(),
                       "the batch norm cannot be folded: the output of ",
                       graph_.node(producer).scope(),
                       " has another consumer");
    }
    throw GraphError(node.scope(),
                     "the batch norm cannot be folded: no convolution is in front of it");
  }

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
  ObserverSpec observer = MinMaxOptions{};
  if (purpose == Purpose::kTraining) {
    observer = MovingAverageOptions{};
  } else if (activation.bits < 8) {
    observer = PercentileOptions{};
  }
  auto slot = std::make_shared<FakeQuantize>(activation.fake_quantize(config.simulation, observer));
  slot->set_layer(site.last_path);
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
    slot->set_layer(site.path);
    site.layer->slots().weight = plugged(std::move(slot), *site.layer);
  }
  if (!accumulators_out && site.config->quantize) {
    site.last->slots().output = activation_slot(site, config, purpose);
  }
}

// For what the example's codes mean; for floats, the range that the configuration declares.
std::shared_ptr<InputQuantize> input_slot(const Tensor& example,
                                          const std::string& name,
                                          const std::optional<Range>& declared) {
  if (const std::shared_ptr<const Codes> codes = input_codes(example)) {
    if (declared && !(integer::input_params(*declared, "QConfig.input_range") == codes->params)) {
      throw QuantError(name,
                       "the example's codes mean ",
                       describe_input(codes->params, codes->features.get()),
                       ", and QConfig::input_range says [",
                       declared->min,
                       ", ",
                       declared->max,
                       "]: the data say it, leave input_range out");
    }
    return std::make_shared<InputQuantize>(codes->params, codes->features, name);
  }
  if (!declared) {
    throw QuantError(name,
                     "nothing says the range of these floats: give prepare a batch's images (of a "
                     "Dataset or DataLoader), which carry it, or set QConfig::input_range");
  }
  auto slot = std::make_shared<InputQuantize>(
      integer::input_params(*declared, "QConfig.input_range"), nullptr, name);
  float min = 0.0f;
  float max = 0.0f;
  const Floats example_floats = example.floats();
  kernels::min_max_f32(example.elements(), example_floats, &min, &max);
  if (!(min >= declared->min && max <= declared->max)) {
    throw DataError(name,
                    "the example's values reach from ",
                    min,
                    " to ",
                    max,
                    ", outside of QConfig::input_range [",
                    declared->min,
                    ", ",
                    declared->max,
                    "]");
  }
  return slot;
}

// Optimizers that were made before ask their parameters for those that are new.
void announce_new_parameters(const Module& net, const std::vector<NamedTensor>& before) {
  auto added = std::make_shared<std::vector<NamedTensor>>();
  for (NamedTensor& entry : net.named_parameters()) {
    const bool known = std::any_of(before.begin(), before.end(), [&](const NamedTensor& old) {
      return old.tensor.same_as(entry.tensor);
    });
    if (known) continue;
    entry.tensor.set_name(entry.name);
    added->push_back(std::move(entry));
  }
  if (added->empty()) return;
  for (NamedTensor entry : before) TensorAccess::set_companions(entry.tensor, added);
}

void prepare(Module& net,
             const std::vector<Tensor>& examples,
             const QConfig& config,
             Purpose purpose) {
  const DefaultRounding rounding;
  check_examples(purpose == Purpose::kTraining ? "prepare_qat" : "prepare_ptq", examples);
  validate(config);
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    if (!slots.inputs.empty() || slots.weight || slots.body || slots.output) {
      throw GraphError(entry.name.empty() ? net.label() : entry.name,
                       "the network is prepared already");
    }
  }
  std::vector<Tensor> inputs;
  for (const Tensor& example : examples) inputs.push_back(example.detach());
  const Graph graph = [&] {
    const DryRun dry_run;  // a FakeQuantize of the network's own may have no parameters yet
    return record_graph(net, inputs);
  }();
  const Survey survey(net, graph, inputs, config);

  std::vector<std::shared_ptr<InputQuantize>> slots;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto slot = input_slot(
        inputs[i], inputs.size() == 1 ? "input" : "input" + std::to_string(i), config.input_range);
    slot->set_simulation(config.simulation);
    slots.push_back(plugged(std::move(slot), net));
  }
  const std::vector<NamedTensor> before = net.named_parameters();
  net.slots().inputs.assign(slots.begin(), slots.end());
  for (const Site& site : survey.sites()) plug(site, config, purpose);
  announce_new_parameters(net, before);
  if (purpose == Purpose::kCalibration) freeze(net);
}

}  // namespace

Graph record_graph(Module& net, const Tensor& example) {
  return record_graph(net, std::vector<Tensor>{example});
}

void check_examples(std::string_view where, const std::vector<Tensor>& examples) {
  if (examples.empty()) throw ShapeError(where, "there is no example");
  for (size_t i = 0; i < examples.size(); ++i) {
    const Tensor& example = examples[i];
    if (!example.defined()) {
      throw GraphError(where,
                       "example ",
                       i,
                       " is undefined: give a batch [N, ...] of at least one sample, such as "
                       "dataset.batch(0, 1).images");
    }
    if (example.rank() < 2 || example.dim(0) < 1 || example.dim(0) != examples[0].dim(0)) {
      throw ShapeError(where,
                       "an example is a batch [N, ...] of at least one sample, and all have as "
                       "many, got ",
                       example.shape());
    }
  }
}

Graph record_graph(Module& net, const std::vector<Tensor>& examples) {
  check_examples("record_graph", examples);
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  const Recording recording;
  return Graph(net(examples));
}

void prepare_qat(Module& net, const Tensor& example, const QConfig& config) {
  prepare(net, {example}, config, Purpose::kTraining);
}

void prepare_qat(Module& net, const std::vector<Tensor>& examples, const QConfig& config) {
  prepare(net, examples, config, Purpose::kTraining);
}

void prepare_ptq(Module& net, const Tensor& example, const QConfig& config) {
  prepare(net, {example}, config, Purpose::kCalibration);
}

void prepare_ptq(Module& net, const std::vector<Tensor>& examples, const QConfig& config) {
  prepare(net, examples, config, Purpose::kCalibration);
}

}  // namespace quantrain::quant
