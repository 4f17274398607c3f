#include "layers/network/tracer.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "framework/core/error.hpp"
#include "layers/network/operation_layer.hpp"
#include "layers/state.hpp"

namespace quantrain {
namespace {

/// Builds the parts of the network from two passes.
class Tracer {
 public:
  Tracer(Module& net, const RecordedCalls& evaluation, const RecordedCalls& training)
      : net_(net), calls_(evaluation), doubled_(training), state_(state(net)) {
    const std::vector<NamedModule> modules = net.named_modules();
    for (size_t i = 0; i < modules.size(); ++i)
      modules_.emplace(modules[i].name, std::pair(i, modules[i].module));
    for (const NamedState& entry : net.named_parameters()) parameters_.insert(entry.name);
    for (const NamedState& entry : state_) reserved_.insert(entry.name);
    for (const NamedModule& entry : modules) reserved_.insert(entry.name);
  }

  TracedParts run(std::vector<NetworkInput> inputs) {
    parts_.inputs = std::move(inputs);
    for (NetworkInput& input : parts_.inputs) input.name = unique(input.name);
    compare();
    for (const Call& call : calls_.calls) {
      if (call.layer == nullptr) ++operations_[call.path];
    }
    // Layers choose their names first, because their parameters are named by them.
    names_.resize(calls_.calls.size());
    for (size_t i = 0; i < names_.size(); ++i) {
      if (calls_.calls[i].layer != nullptr) names_[i] = unique(layer_name(calls_.calls[i]), true);
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const Call& call = calls_.calls[i];
      if (call.layer != nullptr) continue;
      if (is_product(call)) products_.insert(i);
      const bool is_module = is_alone(call) || products_.contains(i);
      names_[i] = is_module ? unique(call.path, true) : unique(below(call.path, call.node->type()));
    }
    for (size_t i = 0; i < names_.size(); ++i) add_step(i);
    for (const Origin& output : calls_.outputs) parts_.outputs.push_back(name_of(output, "output"));
    list();
    return {std::move(parts_), std::move(new_paths_), std::move(sources_)};
  }

 private:
  std::string place(const Call& call) const { return call.path.empty() ? net_.label() : call.path; }

  [[noreturn]] void refuse_modes(const Call* call) const {
    throw GraphError(call == nullptr ? net_.label() : place(*call),
                     "the module computes something else in training than in evaluation",
                     call == nullptr ? std::string() : ": " + what(*call),
                     "; a network's steps do not depend on the mode, except in layers such as "
                     "Dropout and BatchNorm2d: use these, or register your own "
                     "(layers/network/layer_type.hpp)");
  }
  static std::string what(const Call& call) {
    return call.layer != nullptr ? "the layer " + std::string(call.layer->type())
                                 : "operation " + std::string(call.node->type());
  }

  // Both passes must run the same layers and operations on the same values.
  void compare() const {
    const size_t both = std::min(calls_.calls.size(), doubled_.calls.size());
    for (size_t i = 0; i < both; ++i) {
      const Call &a = calls_.calls[i], &b = doubled_.calls[i];
      const bool same = a.layer == b.layer && (a.node == nullptr) == (b.node == nullptr) &&
                        a.path == b.path && a.inputs.size() == b.inputs.size() &&
                        (a.node == nullptr || a.node->type() == b.node->type());
      if (!same) refuse_modes(&b);
      for (size_t k = 0; k < a.inputs.size(); ++k) compare(a, a.inputs[k], b.inputs[k]);
    }
    if (calls_.calls.size() != doubled_.calls.size()) {
      const auto& more = calls_.calls.size() > both ? calls_.calls : doubled_.calls;
      refuse_modes(&more[both]);
    }
    if (calls_.outputs.size() != doubled_.outputs.size()) refuse_modes(nullptr);
    for (size_t i = 0; i < calls_.outputs.size(); ++i) {
      const Origin &a = calls_.outputs[i], &b = doubled_.outputs[i];
      if (a.kind != b.kind || a.index != b.index) refuse_modes(nullptr);
    }
  }

  void compare(const Call& call, const Origin& a, const Origin& b) const {
    if (a.kind != b.kind || a.index != b.index) refuse_modes(&call);
    if (a.kind != Origin::kLeaf || a.leaf.same_as(b.leaf)) return;
    if (a.leaf.kind() == ValueKind::kFloat && same_bits(a.leaf, b.leaf)) return;
    throw GraphError(place(call),
                     what(call),
                     " reads a tensor ",
                     a.leaf.shape(),
                     " that changes with the input or the mode, but no recorded operation computed "
                     "it: end such an operation with return record<ItsNode>(y, {x}) "
                     "(docs/adding_an_operation.md)");
  }

  /// is_module: the name is the path of the module that the step stands for.
  std::string unique(const std::string& name, bool is_module = false) {
    std::string chosen = name;
    const auto is_taken = [&] {
      return taken_.contains(chosen) ||
             (reserved_.contains(chosen) && !(is_module && chosen == name));
    };
    for (int i = 2; is_taken(); ++i) chosen = name + '_' + std::to_string(i);
    taken_.insert(chosen);
    return chosen;
  }

  static std::string below(const std::string& path, std::string_view name) {
    return path.empty() ? std::string(name) : path + '.' + std::string(name);
  }

  std::string layer_name(const Call& call) const {
    const auto found = modules_.find(call.path);
    if (found != modules_.end() && found->second.second == call.layer && !call.path.empty())
      return call.path;
    // The layer is the network itself, or not registered; then the path is its parent's.
    const bool has_state = !state(*call.layer).empty();
    if (has_state && call.layer != &net_ && call.layer->name().empty()) {
      throw GraphError(place(call),
                       "the layer ",
                       call.layer->type(),
                       " was not registered by add(name, layer), so its parameters are not those "
                       "of the network");
    }
    return call.layer == &net_ || call.layer->name().empty() ? below(call.path, call.layer->type())
                                                             : call.path;
  }

  /// Whether a module runs this operation and has nothing else.
  bool is_alone(const Call& call) const {
    const auto found = modules_.find(call.path);
    if (call.path.empty() || found == modules_.end() || operations_.at(call.path) != 1)
      return false;
    Module& module = *found->second.second;
    return !module.has_children() && state(module).empty() && !taken_.contains(call.path);
  }

  /// Whether a module is a convolution or Linear with exactly this weight and bias, such as a class
  /// that derives from Conv2d.
  bool is_product(const Call& call) const {
    const std::string_view type = call.node->type();
    if (type != "conv1d" && type != "conv2d" && type != "linear") return false;
    const auto found = modules_.find(call.path);
    if (call.path.empty() || found == modules_.end() || operations_.at(call.path) != 1)
      return false;
    Module& module = *found->second.second;
    if (module.has_children() || taken_.contains(call.path)) return false;
    const std::vector<NamedState> own = state(module);
    const Tensor weight = call.node->input(1), bias = call.node->input(2);
    if (own.size() != (bias.defined() ? 2u : 1u)) return false;
    return own[0].name == "weight" && own[0].tensor.same_as(weight) &&
           (own.size() == 1 || (own[1].name == "bias" && own[1].tensor.same_as(bias)));
  }

  std::shared_ptr<Module> product_layer(const Call& call) const {
    const std::string_view type = call.node->type();
    LayerMembers members{.state = {{"weight", call.node->input(1)}}};
    if (call.node->input(2).defined()) members.state.emplace_back("bias", call.node->input(2));
    if (type == "linear") return make_layer("Linear", members);
    members.options = call.node->attributes();
    if (type == "conv2d") return make_layer("Conv2d", members);
    const auto one = [&](std::string_view name) { return members.options.integers(name).at(0); };
    members.options = {{"stride", one("stride")},
                       {"padding", one("padding")},
                       {"groups", members.options.integer("groups")},
                       {"dilation", one("dilation")}};
    return make_layer("Conv1d", members);
  }

  void add_step(size_t i) {
    const Call& call = calls_.calls[i];
    NetworkStep step{names_[i], nullptr, {}};
    const bool has_weights = products_.contains(i);
    for (size_t k = 0; k < (has_weights ? 1 : call.inputs.size()); ++k) {
      if (call.inputs[k].kind == Origin::kAbsent) {
        if (k + 1 < call.inputs.size())
          throw GraphError(place(call), what(call), " lacks an operand before its last");
        continue;
      }
      step.inputs.push_back(name_of(call.inputs[k], names_[i]));
    }
    if (call.layer != nullptr) {
      step.layer = make_layer(call.layer->type(), members_of(*call.layer));
      step.layer->slots().folded_weight = call.layer->slots().folded_weight;
    } else if (has_weights) {
      step.layer = product_layer(call);
    } else {
      step.layer = quantrain::operation_layer(call, doubled_.calls[i], place(call));
    }
    const auto found = modules_.find(call.path);
    sources_.push_back(call.layer != nullptr     ? call.layer
                       : found != modules_.end() ? found->second.second
                                                 : &net_);
    new_paths_[call.path] = names_[i];
    parts_.steps.push_back(std::move(step));
  }

  std::string name_of(const Origin& origin, const std::string& step) {
    if (origin.kind == Origin::kInput) return parts_.inputs[origin.index].name;
    if (origin.kind == Origin::kCall) return names_[origin.index];
    for (const auto& [tensor, name] : leaves_) {
      if (tensor.same_as(origin.leaf)) return name;
    }
    const auto known = std::find_if(state_.begin(), state_.end(), [&](const NamedState& entry) {
      return entry.tensor.defined() && entry.tensor.same_as(origin.leaf);
    });
    const bool is_own = known != state_.end();
    const std::string name = is_own ? unique(known->name, true) : unique(step + "_constant");
    leaves_.emplace_back(origin.leaf, name);
    parts_.tensors.push_back({name, origin.leaf, is_own && parameters_.contains(known->name)});
    return name;
  }

  // Lists layers in the order of the module, which is that of its parameters.
  void list() {
    std::vector<size_t> order(parts_.steps.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto position = [&](size_t i) {
      const auto found = modules_.find(calls_.calls[i].path);
      return found == modules_.end() ? modules_.size() : found->second.first;
    };
    std::stable_sort(
        order.begin(), order.end(), [&](size_t a, size_t b) { return position(a) < position(b); });
    if (std::is_sorted(order.begin(), order.end())) return;
    for (const size_t i : order) parts_.listed.push_back(parts_.steps[i].name);
  }

  Module& net_;
  const RecordedCalls& calls_;
  const RecordedCalls& doubled_;
  std::vector<NamedState> state_;
  std::set<std::string> parameters_;
  std::map<std::string, std::pair<size_t, Module*>> modules_;  ///< position and module of a path
  std::map<std::string, int> operations_;                      ///< of each path
  std::set<std::string> taken_, reserved_;
  std::set<size_t> products_;  ///< steps that get a layer with the weight and bias of their module
  std::vector<std::string> names_;  ///< of the steps
  std::vector<std::pair<Tensor, std::string>> leaves_;
  std::map<std::string, std::string> new_paths_;
  std::vector<Module*> sources_;
  NetworkParts parts_;
};

}  // namespace

TracedParts trace_parts(Module& net,
                        std::vector<NetworkInput> inputs,
                        const RecordedCalls& evaluation,
                        const RecordedCalls& training) {
  return Tracer(net, evaluation, training).run(std::move(inputs));
}

}  // namespace quantrain
