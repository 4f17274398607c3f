#include <algorithm>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/shape.hpp"
#include "layers/network/layer_type.hpp"
#include "layers/network/network_file.hpp"
#include "layers/onnx/importer.hpp"
#include "layers/reshape.hpp"

// What the handlers of nodes use: steps, their names, and the order of elements.
namespace quantrain::onnx {
namespace {

/// A node's or tensor's name without the slashes and dots of exporters.
std::string plain_name(std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '.' || c == ':'; }, '_');
  return name;
}

}  // namespace

std::vector<Extent> Importer::shape(const Value& x) const {
  std::vector<Extent> extents;
  for (const Group& axis : x.axes) extents.push_back(atoms_.extent(axis));
  return extents;
}

int64_t Importer::extent(const Value& x, int axis) const {
  const Extent extent = atoms_.extent(x.axes[static_cast<size_t>(axis)]);
  if (extent.batch) throw Refusal{"works across the samples of a batch"};
  return extent.n;
}

void Importer::settle(const Value& x, bool channels_last) {
  if (x.storage->is_settled) return;
  x.storage->axes = usual_storage(x.storage->axes, channels_last);
  x.storage->is_settled = true;
}

std::optional<Value> Importer::reordered(const Value& x, const Groups& wanted) {
  // The tensor's atoms in groups as large as the wanted ones.
  const Group from = flat(x.storage->axes);
  if (flat(wanted).size() != from.size()) return std::nullopt;
  Groups held;
  size_t at = 0;
  for (const Group& group : wanted) {
    held.emplace_back(from.begin() + static_cast<std::ptrdiff_t>(at),
                      from.begin() + static_cast<std::ptrdiff_t>(at + group.size()));
    at += group.size();
    const bool is_same_axis =
        std::is_permutation(group.begin(), group.end(), held.back().begin(), held.back().end());
    if (!is_same_axis || atoms_.size(group) > kMostMemberIntegers) return std::nullopt;
  }
  Value y = x;
  if (y.storage->axes != held) y = arranged(y, held);
  for (size_t k = 1; k < wanted.size(); ++k) {
    if (held[k] == wanted[k]) continue;
    const std::vector<int64_t> indices = onnx::permutation(atoms_, held[k], wanted[k]);
    y.step = add(
        y.step + "_take",
        make_layer("take", {.options = {{"axis", static_cast<int64_t>(k)}, {"indices", indices}}}),
        {y.step});
  }
  y.storage = std::make_shared<Storage>(Storage{wanted});
  return y;
}

bool Importer::can_settle(const Value& x, const Groups& wanted) const {
  const Groups& axes = x.storage->axes;
  return !x.storage->is_settled && !wanted.empty() && wanted[0] == axes[0] &&
         std::is_permutation(wanted.begin(), wanted.end(), axes.begin(), axes.end());
}

Value Importer::arranged(const Value& x, Groups wanted) {
  if (wanted.empty() || wanted[0].empty() || wanted[0][0] != kBatch)
    throw Refusal{"mixes the samples of a batch"};
  if (wanted[0].size() > 1) {  // the tensor's first axis is the batch alone
    wanted.insert(wanted.begin() + 1, Group(wanted[0].begin() + 1, wanted[0].end()));
    wanted[0] = {kBatch};
  }
  if (!x.storage->is_settled) {
    if (can_settle(x, wanted)) {
      x.storage->axes = wanted;
      x.storage->is_settled = true;
    } else {
      settle(x, x.storage->axes.size() == 4);
    }
  }
  if (x.storage->axes == wanted) return x;
  Value y = x;
  const auto reshape = [&](const Groups& axes) {
    if (axes.size() > Shape::kMaxRank) throw Refusal{"needs more than 8 axes"};
    std::vector<int64_t> sample;
    for (size_t i = 1; i < axes.size(); ++i) sample.push_back(atoms_.size(axes[i]));
    if (std::find(sample.begin(), sample.end(), 0) != sample.end())
      throw Refusal{"has no elements"};
    y.step = add(y.step + "_reshape", std::make_shared<Reshape>(sample), {y.step});
    y.storage = std::make_shared<Storage>(Storage{axes});
  };
  const Group from = flat(x.storage->axes);
  const Group to = flat(wanted);
  if (from == to) {
    reshape(wanted);
    return y;
  }
  if (std::optional<Value> taken = reordered(y, wanted)) return *taken;
  // One axis for each atom; atoms that stay together share one.
  Groups pieces;
  for (size_t i = 0; i < to.size(); ++i) {
    const auto at = std::find(from.begin(), from.end(), to[i]);
    if (at == from.end()) throw Refusal{"needs an order of its elements that is not known"};
    const bool continues = i > 1 && at != from.begin() && *(at - 1) == to[i - 1];
    if (continues) {
      pieces.back().push_back(to[i]);
    } else {
      pieces.push_back({to[i]});
    }
  }
  const auto place = [&](const Group& piece) {
    return std::find(from.begin(), from.end(), piece[0]) - from.begin();
  };
  Groups in_order = pieces;
  std::sort(in_order.begin(), in_order.end(), [&](const Group& a, const Group& b) {
    return place(a) < place(b);
  });
  std::vector<int64_t> perm;
  for (const Group& piece : pieces)
    perm.push_back(std::find(in_order.begin(), in_order.end(), piece) - in_order.begin());
  if (y.storage->axes != in_order) reshape(in_order);
  y.step =
      add(y.step + "_transpose", make_layer("transpose", {.options = {{"perm", perm}}}), {y.step});
  y.storage = std::make_shared<Storage>(Storage{pieces});
  if (pieces != wanted) reshape(wanted);
  return y;
}

Value Importer::ordered(const Value& x, const std::vector<int>& axes) {
  Groups wanted;
  for (const int axis : axes) wanted.push_back(x.axes[static_cast<size_t>(axis)]);
  return arranged(x, wanted);
}

Importer::Last Importer::with_last(const Value& x, const std::vector<int>& axes) {
  Group last;
  Groups wanted;
  for (int i = 0; i < static_cast<int>(x.axes.size()); ++i) {
    const Group& axis = x.axes[static_cast<size_t>(i)];
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
      wanted.push_back(axis);
    } else {
      last.insert(last.end(), axis.begin(), axis.end());
    }
  }
  if (std::find(last.begin(), last.end(), kBatch) != last.end())
    throw Refusal{"works across the samples of a batch"};
  // The batch comes first, also if the file has it elsewhere, as in [T, N, F].
  const auto batch = std::find_if(wanted.begin(), wanted.end(), [](const Group& axis) {
    return !axis.empty() && axis.front() == kBatch;
  });
  if (batch != wanted.end()) std::rotate(wanted.begin(), batch, batch + 1);
  if (!x.storage->is_settled && axes.size() == 1) {
    Groups whole = wanted;
    whole.push_back(last);
    if (can_settle(x, whole)) return {arranged(x, whole), last, last};
  }
  settle(x, x.storage->axes.size() == 4);
  // The atoms of the axes in the order in which the tensor holds them.
  Group held;
  for (const Atom atom : flat(x.storage->axes)) {
    if (std::find(last.begin(), last.end(), atom) != last.end()) held.push_back(atom);
  }
  wanted.push_back(held);
  return {arranged(x, wanted), last, held};
}

std::string Importer::step_name(const Node& node, std::string_view weight) const {
  constexpr std::string_view kWeight = ".weight";
  if (weight.ends_with(kWeight) && weight.size() > kWeight.size())
    return std::string(weight.substr(0, weight.size() - kWeight.size()));
  const std::string name = plain_name(node.name.empty() ? node.outputs[0] : node.name);
  return name.empty() ? node.op_type : name;
}

std::string Importer::take_name(std::string path, bool may_have_groups) {
  // A name is a path: no part may be empty, and none may be both a step and a group of steps.
  constexpr auto kMostGroups = 16;
  const bool is_path = may_have_groups && !path.empty() && path.front() != '.' &&
                       path.back() != '.' && path.find("..") == std::string::npos &&
                       std::count(path.begin(), path.end(), '.') <= kMostGroups;
  if (!is_path) std::replace(path.begin(), path.end(), '.', '_');
  const auto groups_of = [&] {
    std::vector<std::string> groups;
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
      groups.push_back(path.substr(0, dot));
    return groups;
  };
  const auto is_taken = [&] {
    const std::vector<std::string> groups = groups_of();
    return names_.contains(path) || groups_.contains(path) ||
           std::any_of(groups.begin(), groups.end(), [&](const std::string& group) {
             return names_.contains(group);
           });
  };
  if (is_taken()) {
    std::replace(path.begin(), path.end(), '.', '_');
    const std::string stem = path;
    int& repeats = repeats_[stem];
    while (is_taken()) path = stem + "_" + std::to_string(++repeats + 1);
  }
  names_.insert(path);
  for (std::string& group : groups_of()) groups_.insert(std::move(group));
  return path;
}

std::string Importer::add(const std::string& name,
                          std::shared_ptr<Module> layer,
                          const std::vector<std::string>& inputs) {
  if (static_cast<int64_t>(parts_.steps.size()) == kMostNetworkSteps)
    throw DataError("onnx", "the network has more than ", kMostNetworkSteps, " steps");
  parts_.steps.push_back({take_name(name, true), std::move(layer), inputs});
  return parts_.steps.back().name;
}

Value Importer::function_of(const Value& x, std::shared_ptr<Module> layer) {
  return function_of(x, std::move(layer), {x.step});
}

Value Importer::scaled(const Value& x, float number) {
  const std::string tensor = add_tensor("number", tensor_of({1}, {number}), false);
  return function_of(x, make_layer("mul", {}), {x.step, tensor});
}

std::string Importer::add_tensor(const std::string& name,
                                 quantrain::Tensor tensor,
                                 bool is_parameter) {
  parts_.tensors.push_back({take_name(plain_name(name), false), std::move(tensor), is_parameter});
  return parts_.tensors.back().name;
}

const Node* Importer::only_reader(const std::string& output, std::string_view op_type) const {
  const auto found = readers_.find(output);
  if (found == readers_.end() || found->second.size() != 1 || outputs_.contains(output))
    return nullptr;
  const Node& reader = model_.graph.nodes[found->second[0]];
  return reader.op_type == op_type && reader.domain.empty() && reader.inputs.size() == 2 ? &reader
                                                                                         : nullptr;
}

ConstantPtr Importer::other_constant(const Node& node, const std::string& input) {
  const ConstantPtr constant = value(node.inputs[node.inputs[0] == input ? 1 : 0]).constant;
  if (constant != nullptr) budget_.take(constant->elements());
  return constant;
}

void Importer::absorb(const Node& reader, const Value& y) {
  absorbed_.insert(static_cast<size_t>(&reader - model_.graph.nodes.data()));
  values_[reader.outputs[0]] = y;
}

Value Importer::function_of(const Value& x,
                            std::shared_ptr<Module> layer,
                            std::vector<std::string> inputs) {
  Value y = x;
  y.step = add(step_name(*current_), std::move(layer), inputs);
  return y;
}

Value Importer::reshaped(const Value& x, const std::vector<Extent>& target) {
  if (target.size() > Shape::kMaxRank) throw Refusal{"to more than 8 axes"};
  Value settled = x;
  if (!x.storage->is_settled) {
    if (std::optional<Value> y = regrouped(atoms_, x, target); y && y->storage == x.storage)
      return *y;  // no axis is split: the storage may still be chosen
    settle(x, x.rank() == 4);
  }
  if (std::optional<Value> y = regrouped(atoms_, settled, target)) return *y;
  Group all = flat(settled.axes);
  if (all.empty() || all[0] != kBatch) throw Refusal{"mixes the samples of a batch"};
  all.erase(all.begin());
  settled = arranged(settled, {{kBatch}, all});
  const Group merged = atoms_.group(atoms_.size(all));
  settled.axes = {{kBatch}, merged};
  settled.storage = std::make_shared<Storage>(Storage{{{kBatch}, merged}});
  std::optional<Value> y = regrouped(atoms_, settled, target);
  if (!y) throw Refusal{"mixes the samples of a batch"};
  return *y;
}

quantrain::Tensor tensor_of(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  return quantrain::Tensor::from(Shape(shape), values);
}

}  // namespace quantrain::onnx
