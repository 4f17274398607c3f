#include "layers/network/network.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <unordered_map>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "layers/fusion.hpp"
#include "layers/network/network_checks.hpp"

namespace quantrain {
namespace {

/// The modules on the way to a step: its children and tensors are those of the network.
class Group : public Module {
 public:
  std::string_view type() const override { return "Group"; }
  using Module::add_buffer;
  using Module::add_child;
  using Module::add_parameter;
  Module* child(std::string_view name) const {
    for (const auto& entry : children()) {
      if (entry->name() == name) return entry.get();
    }
    return nullptr;
  }
};

/// "a.b" and "c" of "a.b.c".
std::pair<std::string, std::string> split(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

std::string text_of(const NetworkInput& input) {
  TextStream text;
  if (!input.shape.empty()) text << Shape(input.shape);
  if (input.range) text << " range [" << input.range->min << ", " << input.range->max << ']';
  if (!input.features.empty()) text << " features " << input.features.size();
  return text.str();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string text_of(const Module& layer) {
  if (find_layer_type(layer) == nullptr) return "";
  const LayerMembers members = members_of(layer);
  TextStream text;
  text << members.options;
  for (const NamedState& entry : members.state)
    text << (text.tellp() == 0 ? "" : " ") << entry.name << ' ' << entry.shape();
  return text.str();
}

}  // namespace

Network::Network(NetworkParts parts) {
  const std::unordered_map<std::string, size_t> values = check_parts(parts);
  parts_ = std::move(parts);
  adopt();
  plan(values);
}

// Groups come before what they contain, so that a parent is there before its children.
void Network::adopt() {
  std::map<std::string, Group*> groups;
  const auto group_of = [&](const std::string& path) {
    Group* parent = nullptr;  // null: the network itself
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
      const std::string prefix = path.substr(0, dot);
      Group*& group = groups[prefix];
      if (group == nullptr) {
        auto made = std::make_shared<Group>();
        group = made.get();
        const std::string name = split(prefix).second;
        parent == nullptr ? add_child(name, std::move(made))
                          : parent->add_child(name, std::move(made));
      }
      parent = group;
    }
    return parent;
  };
  std::map<std::string_view, const NetworkStep*> rest;
  for (const NetworkStep& step : parts_.steps) rest.emplace(step.name, &step);
  const auto adopt_step = [&](const NetworkStep& step) {
    if (rest.erase(step.name) == 0) return;  // listed twice
    Group* const parent = group_of(step.name);
    const std::string name = split(step.name).second;
    parent == nullptr ? add_child(name, step.layer) : parent->add_child(name, step.layer);
  };
  for (const std::string& name : parts_.listed) {
    const auto found = rest.find(name);
    if (found != rest.end()) adopt_step(*found->second);
  }
  for (const NetworkStep& step : parts_.steps) adopt_step(step);
  for (const NetworkTensor& entry : parts_.tensors) {
    Group* const parent = group_of(entry.name);
    const std::string name = split(entry.name).second;
    if (parent == nullptr)
      entry.is_parameter ? add_parameter(name, entry.tensor) : add_buffer(name, entry.tensor);
    else
      entry.is_parameter ? parent->add_parameter(name, entry.tensor)
                         : parent->add_buffer(name, entry.tensor);
  }
  for (NamedState& entry : named_parameters()) entry.tensor.set_name(entry.name);
}

void Network::plan(const std::unordered_map<std::string, size_t>& values) {
  const size_t before = parts_.inputs.size() + parts_.tensors.size();
  std::vector<size_t> readers(values.size(), 0);  // of each value; an output has one more
  for (const std::string& output : parts_.outputs) {
    outputs_.push_back(values.at(output));
    ++readers[outputs_.back()];
  }
  for (const NetworkStep& step : parts_.steps) {
    Run run{step.layer.get(), split(step.name).first, {}, {}};
    for (const std::string& input : step.inputs) {
      run.reads.push_back(values.at(input));
      ++readers[run.reads.back()];
    }
    run.last_read.assign(run.reads.size(), false);
    const LayerType* const type = find_layer_type(*step.layer);
    run.is_list =
        run.reads.size() > 2 || (type != nullptr && type->inputs.most > 2 && run.reads.size() == 1);
    runs_.push_back(std::move(run));
  }
  std::vector<bool> is_kept(values.size(), false);
  for (const size_t output : outputs_) is_kept[output] = true;
  for (size_t i = runs_.size(); i-- > 0;) {
    for (size_t k = runs_[i].reads.size(); k-- > 0;) {
      const size_t value = runs_[i].reads[k];
      runs_[i].last_read[k] = !is_kept[value];
      is_kept[value] = true;
    }
  }
  for (size_t i = 0; i + 1 < runs_.size(); ++i) {
    const Run& next = runs_[i + 1];
    runs_[i].fuses = runs_[i].reads.size() == 1 && !runs_[i].is_list && readers[before + i] == 1 &&
                     next.reads == std::vector<size_t>{before + i} && next.group == runs_[i].group;
  }
}

std::vector<Tensor> Network::run(std::vector<Tensor> x) {
  if (x.size() != parts_.inputs.size()) {
    std::vector<std::string> names;
    for (const NetworkInput& input : parts_.inputs) names.push_back(input.name);
    throw ShapeError(where(),
                     "takes ",
                     names.size(),
                     names.size() == 1 ? " input (" : " inputs (",
                     joined(names),
                     "), got ",
                     x.size());
  }
  std::vector<Tensor> values = std::move(x);
  const size_t before = values.size() + parts_.tensors.size();
  values.reserve(before + runs_.size());
  for (const NetworkTensor& entry : parts_.tensors) values.push_back(entry.tensor);
  values.resize(before + runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& step = runs_[i];
    const auto take = [&](size_t k) {
      Tensor& value = values[step.reads[k]];
      return step.last_read[k] ? std::move(value) : value;
    };
    const Scope scope(step.group);
    if (step.is_list) {
      std::vector<Tensor> inputs;
      for (size_t k = 0; k < step.reads.size(); ++k) inputs.push_back(take(k));
      std::vector<Tensor> y = (*step.layer)(inputs);
      if (y.size() != 1) throw ShapeError(where(), "a step gives ", y.size(), " results, not one");
      values[before + i] = std::move(y[0]);
    } else if (step.reads.size() == 2) {
      Tensor a = take(0);
      values[before + i] = (*step.layer)(std::move(a), take(1));
    } else {
      Tensor input = take(0);
      if (step.fuses && run_fused(*step.layer, *runs_[i + 1].layer, input)) {
        values[before + ++i] = std::move(input);
        continue;
      }
      values[before + i] = (*step.layer)(std::move(input));
    }
  }
  std::vector<Tensor> outputs;
  for (const size_t output : outputs_) outputs.push_back(values[output]);
  return outputs;
}

Tensor Network::only(std::vector<Tensor> x) {
  if (outputs_.size() != 1) {
    throw ShapeError(where(),
                     "has ",
                     outputs_.size(),
                     " outputs: pass a list, such as net(std::vector{x}), to get them all");
  }
  return run(std::move(x))[0];
}

Tensor Network::take_forward(Tensor x) {
  std::vector<Tensor> list;
  list.push_back(std::move(x));
  return only(std::move(list));
}

std::vector<Tensor> Network::forward(const std::vector<Tensor>& x) { return run(x); }

void Network::describe_inputs(std::vector<NetworkInput> inputs) {
  const bool same = std::equal(inputs.begin(),
                               inputs.end(),
                               parts_.inputs.begin(),
                               parts_.inputs.end(),
                               [](const auto& a, const auto& b) { return a.name == b.name; });
  if (!same) throw GraphError("Network", "inputs have other names than before");
  parts_.inputs = std::move(inputs);
}

std::vector<Tensor> Network::example() const {
  std::vector<Tensor> batch;
  for (const NetworkInput& input : parts_.inputs) {
    if (input.shape.empty()) {
      throw GraphError(
          "Network", "the shape of input \"", input.name, "\" is unknown: see describe_inputs()");
    }
    std::vector<int64_t> extents{1};
    extents.insert(extents.end(), input.shape.begin(), input.shape.end());
    const Shape shape(extents);
    if (!input.range) {
      batch.push_back(Tensor::zeros(shape));
      continue;
    }
    const QParams params = integer::input_params(*input.range, input.name);
    Codes codes{Buffer<uint8_t>(shape.elements()), {}, params};
    std::fill_n(codes.bytes.data(),
                codes.bytes.size(),
                static_cast<uint8_t>(params.zero_point[0] + codes.offset()));
    if (!input.features.empty())
      codes.features = std::make_shared<const integer::InputFeatures>(input.features);
    batch.push_back(Tensor::decoded(shape, std::make_shared<const Codes>(std::move(codes))));
  }
  return batch;
}

std::ostream& operator<<(std::ostream& stream, const Network& network) {
  TextTable table("llll");
  table.add({"step", "layer", "reads", "members"});
  for (const NetworkInput& input : network.inputs())
    table.add({input.name, "(input)", "", text_of(input)});
  for (const NetworkTensor& entry : network.tensors()) {
    TextStream shape;
    shape << entry.tensor.shape();
    table.add({entry.name, entry.is_parameter ? "(parameter)" : "(constant)", "", shape.str()});
  }
  for (const NetworkStep& step : network.steps()) {
    table.add(
        {step.name, std::string(step.layer->type()), joined(step.inputs), text_of(*step.layer)});
  }
  stream << table << "outputs: " << joined(network.outputs()) << '\n';
  if (!network.classes().empty()) stream << "classes: " << joined(network.classes()) << '\n';
  return stream;
}

}  // namespace quantrain
