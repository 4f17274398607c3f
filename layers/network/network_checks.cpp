#include "layers/network/network_checks.hpp"

#include <algorithm>
#include <set>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

constexpr int kMostGroups = 64;  // on the way to a step

/// Collects the names of a network, and refuses those that cannot be told apart.
class Names {
 public:
  /// Throws: GraphError naming `what` unless the name is new, and a path of valid parts.
  void add(const char* what, const std::string& name, bool is_path) {
    size_t first = 0;
    for (int depth = 0; first <= name.size(); ++depth) {
      if (depth == kMostGroups)
        throw GraphError(kWhere, what, " \"", name, "\" has more than ", kMostGroups, " parts");
      const size_t dot = std::min(name.find('.', first), name.size());
      const std::string part = name.substr(first, dot - first);
      if (part.empty())
        throw GraphError(kWhere, "the name of ", what, " has an empty part: \"", name, '"');
      checked::check_name(kWhere, part);
      if (is_path && is_slot(part))
        throw GraphError(kWhere, what, " \"", name, "\": \"", part, "\" is the name of a slot");
      if (is_path && dot < name.size()) add_group(name.substr(0, dot), what, name);
      first = dot + 1;
    }
    if (is_path && groups_.contains(name))
      throw GraphError(kWhere, what, " \"", name, "\" is also a group: other names begin with it");
    if (!names_.emplace(name).second)
      throw GraphError(kWhere, "two inputs, tensors or steps are named \"", name, '"');
    if (is_path) paths_.insert(name);
  }

 private:
  struct checked : Module {
    using Module::check_name;
  };
  static constexpr const char* kWhere = "Network";

  static bool is_slot(std::string_view part) {
    return part == "weight_slot" || part == "body_slot" || part == "output_slot" ||
           part.starts_with("input_slot");
  }
  void add_group(std::string group, const char* what, const std::string& name) {
    if (paths_.contains(group)) {
      throw GraphError(
          kWhere, what, " \"", name, "\" lies below \"", group, "\", which is a layer or tensor");
    }
    groups_.insert(std::move(group));
  }

  std::set<std::string> names_, paths_, groups_;
};

void check_inputs(const NetworkParts& parts) {
  if (parts.inputs.empty()) throw GraphError("Network", "there is no input");
  if (parts.outputs.empty()) throw GraphError("Network", "there is no output");
}

/// Throws: GraphError unless the step reads as many values as its layer takes.
void check_layer(const NetworkStep& step) {
  if (step.layer == nullptr)
    throw GraphError("Network", "the layer of step \"", step.name, "\" is null");
  if (step.inputs.empty())
    throw GraphError("Network", "step \"", step.name, "\" reads nothing: name its inputs");
  const LayerType* const type = find_layer_type(*step.layer);
  if (type == nullptr) return;
  const auto count = static_cast<int64_t>(step.inputs.size());
  if (count >= type->inputs.least && count <= type->inputs.most) return;
  TextStream takes;
  takes << type->inputs.least;
  if (type->inputs.most != type->inputs.least) takes << " to " << type->inputs.most;
  throw GraphError("Network",
                   "step \"",
                   step.name,
                   "\" reads ",
                   count,
                   " values, but ",
                   type->name,
                   " takes ",
                   takes.str());
}

}  // namespace

std::unordered_map<std::string, size_t> check_parts(const NetworkParts& parts) {
  check_inputs(parts);
  Names names;
  std::unordered_map<std::string, size_t> values;
  const auto add = [&](const char* what, const std::string& name, bool is_path) {
    names.add(what, name, is_path);
    values.emplace(name, values.size());
  };
  for (const NetworkInput& input : parts.inputs) add("input", input.name, false);
  for (const NetworkTensor& entry : parts.tensors) {
    add("tensor", entry.name, true);
    if (!entry.tensor.defined())
      throw GraphError("Network", "the tensor \"", entry.name, "\" is undefined");
  }
  std::set<const Module*> layers;
  const size_t before = values.size();
  for (const NetworkStep& step : parts.steps) add("step", step.name, true);
  for (size_t i = 0; i < parts.steps.size(); ++i) {
    const NetworkStep& step = parts.steps[i];
    check_layer(step);
    if (!layers.insert(step.layer.get()).second) {
      throw GraphError("Network",
                       "step \"",
                       step.name,
                       "\" has the layer of another step: make two layers; they may share their "
                       "parameters (make_layer)");
    }
    for (const std::string& input : step.inputs) {
      const auto found = values.find(input);
      if (found == values.end())
        throw GraphError(
            "Network", "step \"", step.name, "\" reads \"", input, "\", which does not exist");
      if (found->second < before + i) continue;
      throw GraphError("Network",
                       "step \"",
                       step.name,
                       "\" reads \"",
                       input,
                       "\", which is ",
                       input == step.name ? "its own result" : "computed later",
                       ": list steps in the order in which they run; a network has no cycles");
    }
  }
  for (const std::string& output : parts.outputs) {
    if (!values.contains(output))
      throw GraphError("Network", "the output \"", output, "\" does not exist");
  }
  for (const std::string& name : parts.listed) {
    const auto found = values.find(name);
    if (found == values.end() || found->second < before)
      throw GraphError("Network", "`listed` names \"", name, "\", which is no step");
  }
  return values;
}

}  // namespace quantrain
