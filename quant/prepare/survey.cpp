#include "quant/prepare/survey.hpp"

#include <algorithm>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "layers/activation.hpp"
#include "quant/prepare/refusals.hpp"

namespace quantrain::quant {

Survey::Survey(Module& net,
               const Graph& graph,
               const std::vector<Tensor>& inputs,
               const QConfig& config)
    : net_(net), graph_(graph), inputs_(inputs), config_(config) {
  for (const NamedModule& entry : net.named_modules()) modules_.emplace(entry.name, entry.module);
  for (const GraphNode& node : graph.nodes()) {
    // Views do not count: a layer may reshape the inputs and the output of its operation. Nor do
    // operations that pass on the input's range to the layer's own, such as the padding of a pool.
    if (!node.node->traits().is_view && !leads_to_own(node)) ++runs_[node.scope()];
    ++runs_of_type_[{node.scope(), node.type()}];
  }
  depends_.assign(graph.nodes().size(), false);
  for (const Tensor& input : inputs) {
    const std::vector<bool> on_input = graph.dependents(input);
    for (size_t i = 0; i < depends_.size(); ++i) depends_[i] = depends_[i] || on_input[i];
  }
  check_recorded();
  std::vector<const GraphNode*> data;  // the other nodes are constants
  for (const GraphNode& node : graph.nodes()) {
    if (depends_[static_cast<size_t>(node.index)]) data.push_back(&node);
  }
  Refusals refusals;
  for (const GraphNode* node : data) {
    try {
      survey(*node);
    } catch (const Error&) {
      refusals.keep();
    }
  }
  refusals.throw_all(net.label());
  if (sites_.empty()) refuse_without_sites(data);
  for (const auto& [path, layer] : config.layers) check_has_site(path);
  for (const auto& [type, layer] : config.types) check_has_type(type);
}

void Survey::survey(const GraphNode& node) {
  const bool in_float = stays_float(node);
  if (!in_float) check_integer_form(node);
  const QuantizationTraits traits = node.node->traits();
  if (fused_.contains(node.index)) return;
  // A layer that the configuration leaves in float has a site, so that the configuration may name
  // it, even if its operations close no range.
  const bool computes = !traits.is_view && !traits.is_activation;
  if (traits.closes_range || (in_float && computes) || has_own_entry(node)) add_site(node);
}

bool Survey::has_own_entry(const GraphNode& activation) const {
  const auto found = modules_.find(activation.scope());
  if (!activation.node->traits().is_activation || found == modules_.end()) return false;
  const Module& layer = *found->second;
  return activation_of(layer) != Activation::kNone &&
         &config_.of(layer.type(), activation.scope()) != &config_.model;
}

bool Survey::has_constants(const GraphNode& node) const {
  const QuantizationTraits traits = node.node->traits();
  if (!traits.closes_range || traits.weight >= 0) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].defined() && !is_data(node, i)) return true;
  }
  return false;
}

void Survey::check_integer_form(const GraphNode& node) const {
  const QuantizationTraits traits = node.node->traits();
  if (!(has_constants(node) ? traits.takes_constants : traits.takes_data))
    node.node->refuse_integers(place_of(node));
  const int64_t samples = inputs_[0].dim(0);
  const auto is_batch = [&](const Tensor& t) { return t.rank() > 0 && t.dim(0) == samples; };
  if (traits.is_view && is_batch(node.inputs[0]) && !is_batch(node.output))
    refuse_batch_axis(place_of(node), node);
}

bool Survey::is_data(const GraphNode& node, size_t i) const {
  const Tensor& x = node.inputs[i];
  const auto same = [&](const Tensor& input) { return input.same_as(x); };
  if (!x.defined()) return false;
  return node.producers[i] == GraphNode::kLeaf ? std::any_of(inputs_.begin(), inputs_.end(), same)
                                               : depends_[static_cast<size_t>(node.producers[i])];
}

std::string Survey::place_of(const GraphNode& node) const {
  return node.scope().empty() ? net_.label() : node.scope();
}

void Survey::check_recorded() const {
  const auto depends = [&](const Tensor& output) {
    const int last = graph_.producer(output);
    const auto same = [&](const Tensor& input) { return input.same_as(output); };
    return last == GraphNode::kLeaf ? std::any_of(inputs_.begin(), inputs_.end(), same)
                                    : bool{depends_[static_cast<size_t>(last)]};
  };
  const std::vector<Tensor>& outputs = graph_.outputs();
  if (std::any_of(outputs.begin(), outputs.end(), depends)) return;
  // The first node whose input has as many samples as the batch, but was not made by a recorded
  // node.
  const auto reader =
      std::find_if(graph_.nodes().begin(), graph_.nodes().end(), [&](const GraphNode& node) {
        const Tensor x = node.inputs.empty() ? Tensor() : node.inputs[0];
        return x.defined() && x.node() == nullptr && !x.requires_grad() && x.rank() > 0 &&
               x.dim(0) == inputs_[0].dim(0);
      });
  const bool found = reader != graph_.nodes().end();
  throw GraphError(
      found ? place_of(*reader) : net_.label(),
      found ? "the input of operation " : "the output",
      found ? reader->type() : "",
      " does not depend on the network's input in the recorded graph: an earlier operation made a "
      "new tensor without recording it; end that operation with return record<ItsNode>(y, {x}) "
      "(docs/adding_an_operation.md)");
}

void Survey::refuse_without_sites(const std::vector<const GraphNode*>& data) const {
  TextStream types;
  for (const GraphNode* node : data) types << ' ' << node->type();
  throw GraphError(
      net_.label(),
      "none of the network's operations can be quantized:",
      data.empty() ? " there is none" : types.str(),
      "; quantization needs an operation that computes new values, such as Conv2d, Linear or Add");
}

void Survey::refuse_place(const GraphNode& node) const {
  const std::string where = place_of(node);
  const QuantizationTraits traits = node.node->traits();
  const bool constants = has_constants(node);
  TextStream operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_data(node, i))
      operands << (operands.tellp() == 0 ? " of " : " and ") << node.inputs[i].shape();
  }
  const auto found = modules_.find(node.scope());
  const bool among_others = found != modules_.end() && !found->second->has_children() &&
                            runs_.at(node.scope()) > runs_of_type_.at({node.scope(), node.type()});
  const bool other_layer = traits.layer.empty() || (constants && traits.takes_data);
  throw GraphError(where,
                   "operation ",
                   node.type(),
                   operands.str(),
                   node.scope().empty() ? " in its forward()" : "",
                   " has no place for a FakeQuantize: ",
                   among_others && other_layer ? "this layer runs other operations, too: " : "",
                   other_layer ? "run it in a layer of its own" : "use the layer ",
                   other_layer ? "" : traits.layer,
                   ", registered by add(name, layer) in the constructor");
}

void Survey::check_has_type(const std::string& type) const {
  std::set<std::string_view> known;
  for (const Site& site : sites_) known.insert(site.layer->type());
  if (known.count(type) != 0) return;
  for (const Site& site : sites_) {
    if (site.last->type() != type &&
        (site.batch_norm == nullptr || site.batch_norm->type() != type))
      continue;
    throw QuantError("QConfig",
                     "all layers of type \"",
                     type,
                     "\" are fused with the layers before them: entries for those, such as \"",
                     site.layer->type(),
                     "\", apply to both");
  }
  TextStream list;
  for (const std::string_view name : known) list << ' ' << name;
  throw QuantError("QConfig",
                   "no layers of type \"",
                   type,
                   "\" are quantized in this network; those that are:",
                   list.str());
}

void Survey::check_has_site(const std::string& path) const {
  TextStream known;
  for (const Site& site : sites_) {
    if (site.path == path) return;
    known << ' ' << site.path;
  }
  for (const Site& site : sites_) {
    const bool folded = site.batch_norm != nullptr && site.batch_norm_path == path;
    if (site.last_path != path && !folded) continue;
    throw QuantError("QConfig",
                     "layer \"",
                     path,
                     "\" is fused with the layer \"",
                     site.path,
                     "\": the entry for \"",
                     site.path,
                     "\" applies to both");
  }
  throw QuantError("QConfig",
                   "layer \"",
                   path,
                   modules_.count(path) == 0 ? "\" does not exist" : "\" has nothing to quantize",
                   "; layers to quantize:",
                   known.str());
}

bool Survey::leaves_in_float(const std::string& path) const {
  const auto found = modules_.find(path);
  return found != modules_.end() && !config_.of(found->second->type(), path).quantize;
}

bool Survey::stays_float(const GraphNode& node) const {
  const QuantizationTraits traits = node.node->traits();
  return traits.weight < 0 && !traits.is_batch_norm && leaves_in_float(node.scope());
}

Module& Survey::layer_of(const GraphNode& node) const {
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

BatchNorm& Survey::batch_norm_of(const GraphNode& node) const {
  auto* const layer = dynamic_cast<BatchNorm*>(&layer_of(node));
  if (layer == nullptr) {
    throw GraphError(node.scope(),
                     "a batch norm outside of the layers BatchNorm1d and BatchNorm2d cannot be "
                     "prepared, because its statistics are unknown: use one of these layers");
  }
  return *layer;
}

const GraphNode* Survey::sole_consumer(const GraphNode& node) const {
  return node.consumers.size() == 1 && !is_output(node) ? &graph_.node(node.consumers[0]) : nullptr;
}

bool Survey::leads_to_own(const GraphNode& node) const {
  const auto passes = [](const GraphNode& n) {
    const QuantizationTraits traits = n.node->traits();
    return !traits.closes_range && !traits.is_activation && !traits.is_batch_norm &&
           traits.weight < 0;
  };
  if (!passes(node)) return false;
  const GraphNode* next = sole_consumer(node);
  while (next != nullptr && next->scope() == node.scope() && passes(*next))
    next = sole_consumer(*next);
  return next != nullptr && next->scope() == node.scope() && next->node->traits().closes_range;
}

bool Survey::is_output(const GraphNode& node) const {
  const auto& outputs = graph_.outputs();
  return std::any_of(
      outputs.begin(), outputs.end(), [&](const Tensor& t) { return t.same_as(node.output); });
}

bool Survey::gives_output(const GraphNode& node) const {
  const GraphNode* end = &node;
  for (const GraphNode* next = sole_consumer(*end); next != nullptr; next = sole_consumer(*end)) {
    if (!next->node->traits().is_view) return false;
    end = next;
  }
  return is_output(*end) && end->consumers.empty();
}

bool Survey::gives_logits(const GraphNode& node) const {
  std::vector<const GraphNode*> pending{&node};
  while (!pending.empty()) {
    const GraphNode& end = *pending.back();
    pending.pop_back();
    if (end.consumers.empty() && !is_output(end)) return false;
    for (const int index : end.consumers) {
      const GraphNode& next = graph_.node(index);
      const QuantizationTraits traits = next.node->traits();
      if (!traits.is_view && !traits.range.has_value()) return false;
      pending.push_back(&next);
    }
  }
  return true;
}

void Survey::check_weights(const Site& site) {
  if (!site.config->quantize) return;
  const Tensor& weight = site.weights.weight;
  if (weight.elements() == 0)
    throw QuantError(site.path, "weight ", weight.shape(), " has no elements to quantize");
  const WeightConfig& config = site.config->weight;
  // Affine weights exist in simulation only.
  if (config.scheme != QScheme::kSymmetric) return;
  const QType type{
      .bits = std::max(config.bits, config.first_bits), .is_signed = true, .narrow = config.narrow};
  const int64_t longest = longest_reduction(type);
  const int64_t length = weight.elements() / weight.dim(0);
  if (length > longest) {
    throw QuantError(site.path,
                     "sums of ",
                     length,
                     " products are longer than ",
                     longest,
                     ": an accumulator could overflow with weights of type ",
                     type);
  }
}

void Survey::add_site(const GraphNode& node) {
  const QuantizationTraits traits = node.node->traits();
  Site site;
  if (stays_float(node)) {
    Module& layer = *modules_.at(node.scope());
    site.layer = site.last = &layer;
    site.path = site.last_path = node.scope();
    site.config = &config_.of(layer.type(), site.path);
    sites_.push_back(site);
    return;
  }
  site.layer = &layer_of(node);
  site.path = node.scope();
  site.has_weights = traits.weight >= 0;
  site.range = traits.range;
  site.config = &config_.of(site.layer->type(), site.path);
  site.last = site.layer;
  site.last_path = site.path;
  if (site.has_weights) {
    const auto weight = static_cast<size_t>(traits.weight);
    site.weights = {node.inputs[weight], node.inputs[weight + 1]};
    check_weights(site);
  }
  if (traits.is_batch_norm) {
    site.batch_norm = &batch_norm_of(node);
    site.batch_norm_path = site.path;
  }
  const GraphNode* end = &node;
  const GraphNode* next = sole_consumer(*end);
  if (traits.folds_batch_norm && next != nullptr && next->node->traits().is_batch_norm) {
    site.batch_norm = &batch_norm_of(*next);
    site.batch_norm_path = next->scope();
    site.last = site.batch_norm;
    site.last_path = site.batch_norm_path;
    fused_.insert(next->index);
    end = next;
    next = sole_consumer(*end);
  }
  next = behind_views(next);
  if (!traits.is_activation && next != nullptr && next->node->traits().is_activation) {
    site.last = &layer_of(*next);
    site.last_path = next->scope();
    fused_.insert(next->index);
    end = next;
  }
  site.gives_output = gives_output(*end);
  site.gives_logits = gives_logits(*end);
  sites_.push_back(site);
}

const GraphNode* Survey::behind_views(const GraphNode* node) const {
  while (node != nullptr && node->node->traits().is_view) node = sole_consumer(*node);
  return node;
}

}  // namespace quantrain::quant
