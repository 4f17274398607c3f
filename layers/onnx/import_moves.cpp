#include <algorithm>
#include <numeric>
#include <utility>

#include "layers/concat.hpp"
#include "layers/dropout.hpp"
#include "layers/moves.hpp"
#include "layers/network/layer_type.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/importer.hpp"

// Operators that move elements. Those that only rename axes add no step (layout.hpp).
namespace quantrain::onnx {
namespace {

void identity(NodeImport& n) { n.give(n.x()); }

void cast(NodeImport& n) {
  const auto to = static_cast<ElementType>(n.node.get("to", int64_t{0}));
  if (!is_float(to)) throw Refusal{"to " + std::string(name_of(to))};
  n.give(n.x());
}

void dropout(NodeImport& n) {
  if (n.node.outputs.size() > 1 && !n.node.outputs[1].empty())
    throw Refusal{"with the output mask"};
  if (n.has(2) && n.constant(2).integers() != std::vector<int64_t>{0})
    throw Refusal{"with training_mode"};
  const float ratio = n.has(1) ? n.scalar(1) : n.node.get("ratio", 0.5f);
  if (!(ratio > 0.0f && ratio < 1.0f)) return n.give(n.x());
  n.give(n.importer.function_of(n.x(), std::make_shared<Dropout>(ratio)));
}

void transpose(NodeImport& n) {
  Value y = n.x();
  std::vector<int64_t> perm = n.node.get("perm", std::vector<int64_t>());
  if (n.node.find("perm") == nullptr) {
    for (int64_t i = y.rank(); i-- > 0;) perm.push_back(i);
  }
  if (static_cast<int64_t>(perm.size()) != y.rank())
    throw Refusal{"perm does not name each axis once"};
  checked_axes(perm, y.rank());
  Groups axes;
  for (const int64_t axis : perm)
    axes.push_back(y.axes[static_cast<size_t>(checked_axis(axis, y.rank()))]);
  y.axes = std::move(axes);
  n.give(std::move(y));
}

void reshape(NodeImport& n) {
  Importer& importer = n.importer;
  const Value& x = n.x();
  const std::vector<Extent> given = n.constant(1).extents();
  const bool copies_zeros = n.node.get("allowzero", int64_t{0}) == 0;
  const std::vector<Extent> shape = importer.shape(x);
  Extent total{1};
  for (const Extent& extent : shape) total = total * extent;
  std::vector<Extent> target;
  std::optional<size_t> open;
  bool names_batch = false;
  for (size_t i = 0; i < given.size(); ++i) {
    Extent extent = given[i];
    if (extent == Extent{0} && copies_zeros) {
      if (i >= shape.size()) throw Refusal{"copies an extent that its input does not have"};
      extent = shape[i];
    }
    if (extent == Extent{-1}) {
      if (open) throw Refusal{"leaves two extents open"};
      open = i;
    } else if (extent.n < 1) {
      throw Refusal{"to an invalid shape"};
    }
    names_batch = names_batch || extent.batch;
    target.push_back(extent);
  }
  // A file for a fixed number of samples, often 1, says this number.
  const int64_t samples = importer.declared_batch();
  if (!names_batch && total.batch && !target.empty()) {
    Extent& first = target[0];
    if (first == Extent{samples}) {
      first = {1, true};
    } else if (!open && first.n % samples == 0) {
      first = {first.n / samples, true};
    }
  }
  if (open) {
    Extent known{1};
    for (size_t i = 0; i < target.size(); ++i) {
      if (i != *open) known = known * target[i];
    }
    target[*open] = total / known;
  }
  n.give(importer.reshaped(x, target));
}

void flatten(NodeImport& n) {
  const Value& x = n.x();
  const int64_t axis = n.node.get("axis", int64_t{1});
  if (axis < -x.rank() || axis > x.rank()) throw Refusal{"axis does not exist"};
  const auto middle = x.axes.begin() + (axis < 0 ? axis + x.rank() : axis);
  Value y = x;
  y.axes = {flat({x.axes.begin(), middle}), flat({middle, x.axes.end()})};
  n.give(std::move(y));
}

void squeeze(NodeImport& n) {
  Value y = n.x();
  std::vector<int64_t> axes = n.integers(1, "axes");
  if (axes.empty()) {
    for (int64_t i = 0; i < y.rank(); ++i) {
      if (y.axes[static_cast<size_t>(i)].empty()) axes.push_back(i);
    }
  }
  const std::vector<int> checked = checked_axes(axes, y.rank());
  for (size_t k = checked.size(); k-- > 0;) {
    const auto axis = y.axes.begin() + checked[k];
    if (*axis == Group{kBatch} && n.importer.declared_batch() == 1 && axis + 1 != y.axes.end()) {
      // Of a file for one sample: the batch stays, as a part of the next axis.
      (axis + 1)->insert((axis + 1)->begin(), kBatch);
    } else if (!axis->empty()) {
      throw Refusal{"removes an axis that has not the extent 1"};
    }
    y.axes.erase(axis);
  }
  n.give(std::move(y));
}

void unsqueeze(NodeImport& n) {
  Value y = n.x();
  const std::vector<int64_t> axes = n.integers(1, "axes");
  const int64_t rank = y.rank() + static_cast<int64_t>(axes.size());
  if (rank > Shape::kMaxRank) throw Refusal{"to more than 8 axes"};
  for (const int axis : checked_axes(axes, rank)) {
    const auto at = y.axes.begin() + axis;
    Group added;
    if (at != y.axes.end() && at->size() > 1 && at->front() == kBatch) {
      added = {kBatch};  // a batch of one sample, which a Squeeze moved here
      at->erase(at->begin());
    }
    y.axes.insert(y.axes.begin() + axis, added);
  }
  n.give(std::move(y));
}

/// The value with an axis of the file as an axis of the tensor, in the file's order; and which one.
std::pair<Value, int> separate_axis(Importer& importer, const Value& given, int axis) {
  importer.settle(given, given.rank() == 4);
  const Group& wanted = given.axes[static_cast<size_t>(axis)];
  const Groups& held = given.storage->axes;
  Value x = given;
  if (wanted.empty() || std::find(held.begin(), held.end(), wanted) == held.end()) {
    std::vector<int> axes(static_cast<size_t>(given.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    if (given.rank() == 4) axes = {0, 2, 3, 1};
    x = importer.ordered(given, axes);
  }
  const auto at = std::find(x.storage->axes.begin(), x.storage->axes.end(), wanted);
  if (wanted.empty() || at == x.storage->axes.end() || at == x.storage->axes.begin())
    throw Refusal{"works across the samples of a batch"};
  return {x, static_cast<int>(at - x.storage->axes.begin())};
}

/// Gives y, which was x, another extent along an axis.
void replace_axis(
    Importer& importer, Value& y, const Value& x, int axis, int our_axis, int64_t extent) {
  y.storage = std::make_shared<Storage>(*x.storage);
  y.axes[static_cast<size_t>(axis)] = importer.atoms().group(extent);
  y.storage->axes[static_cast<size_t>(our_axis)] = y.axes[static_cast<size_t>(axis)];
}

/// Part of an axis: elements start, start + step, ...
Value sliced(NodeImport& n, const Value& given, int axis, const SliceRange& range, int64_t extent) {
  if (range.start == 0 && range.step == 1 && range.count == extent) return given;
  if (range.count == 0) throw Refusal{"leaves no elements"};
  Importer& importer = n.importer;
  const auto [x, our_axis] = separate_axis(importer, given, axis);
  const int64_t last = range.start + range.step * range.count;
  SliceOptions options{.begin = range.start, .step = range.step};
  if (last >= 0) options.end = last;
  Value y = importer.function_of(x, std::make_shared<Slice>(our_axis, options));
  replace_axis(importer, y, x, axis, our_axis, range.count);
  return y;
}

void slice(NodeImport& n) {
  Value x = n.x();
  const std::vector<int64_t> starts = n.integers(1, "starts");
  const std::vector<int64_t> ends = n.integers(2, "ends");
  std::vector<int64_t> axes = n.integers(3, "axes");
  const std::vector<int64_t> steps =
      n.has(4) ? n.constant(4).integers() : std::vector<int64_t>(starts.size(), 1);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw Refusal{"its lists differ in length"};
  checked_axes(axes, x.rank());
  for (size_t k = 0; k < starts.size(); ++k) {
    const int axis = checked_axis(axes[k], x.rank());
    const bool is_batch = n.importer.shape(x)[static_cast<size_t>(axis)].batch;
    if (is_batch && starts[k] == 0 && steps[k] == 1 && ends[k] >= n.importer.declared_batch())
      continue;
    const int64_t extent = n.importer.extent(x, axis);
    x = sliced(n, x, axis, slice_range(extent, starts[k], ends[k], steps[k]), extent);
  }
  n.give(std::move(x));
}

void split(NodeImport& n) {
  const Value& x = n.x();
  const int axis = checked_axis(n.node.get("axis", int64_t{0}), x.rank());
  const int64_t extent = n.importer.extent(x, axis);
  int64_t start = 0;
  for (const int64_t size : split_sizes(n.node, extent, n.integers(1, "split"))) {
    n.give(sliced(n, x, axis, {start, 1, size}, extent));
    start += size;
  }
}

/// Gather with constant indices. One index, or a range, is a slice.
void gather(NodeImport& n) {
  Importer& importer = n.importer;
  const Value& given = n.x();
  const Constant& constant = n.constant(1);
  const int axis = checked_axis(n.node.get("axis", int64_t{0}), given.rank());
  const int64_t extent = importer.extent(given, axis);
  std::vector<int64_t> places = constant.integers();
  for (int64_t& place : places) {
    if (place < -extent || place >= extent) throw Refusal{"an index lies outside of its axis"};
    if (place < 0) place += extent;
  }
  if (constant.dims.size() > 1 || places.empty()) throw Refusal{"with indices of several axes"};
  const auto count = static_cast<int64_t>(places.size());
  const int64_t step = count > 1 ? places[1] - places[0] : 1;
  bool is_range = step != 0;
  for (size_t i = 1; i < places.size(); ++i)
    is_range = is_range && places[i] - places[i - 1] == step;
  Value y = given;
  if (is_range) {
    y = sliced(n, given, axis, {places[0], step, count}, extent);
  } else {
    const auto [x, our_axis] = separate_axis(importer, given, axis);
    y = importer.function_of(
        x, make_layer("take", {.options = {{"axis", int64_t{our_axis}}, {"indices", places}}}));
    replace_axis(importer, y, x, axis, our_axis, count);
  }
  if (constant.dims.empty()) y.axes.erase(y.axes.begin() + axis);
  n.give(std::move(y));
}

/// Whether a constant holds zeros only. Some exporters write a padding as a Concat of zeros.
bool is_zero(const Constant& constant) {
  const std::vector<float> floats = constant.floats();
  return std::all_of(floats.begin(), floats.end(), [](float v) { return v == 0.0f; });
}

/// A value of a Concat, and the zeros before and after it.
struct Part {
  Value x;
  int64_t before = 0;
  int64_t after = 0;
};

std::vector<Part> parts_of(NodeImport& n, int axis, int64_t rank) {
  std::vector<Part> parts;
  int64_t before = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!n.is_constant(i)) {
      if (n.x(i).rank() != rank) throw Refusal{"of inputs that differ in shape"};
      parts.push_back({n.x(i), before, 0});
      before = 0;
      continue;
    }
    const Constant& zeros = n.constant(i);
    if (static_cast<int64_t>(zeros.dims.size()) != rank || !is_zero(zeros))
      throw Refusal{"of a constant other than zeros"};
    const int64_t count = zeros.dims[static_cast<size_t>(axis)];
    (parts.empty() ? before : parts.back().after) += count;
  }
  return parts;
}

void concat(NodeImport& n) {
  Importer& importer = n.importer;
  const auto first_value = std::find_if(
      n.inputs.begin(), n.inputs.end(), [](const Value& x) { return x.constant == nullptr; });
  const int64_t rank = first_value->rank();
  const int axis = checked_axis(n.node.get("axis", int64_t{1}), rank);
  if (n.inputs.size() == 1) return n.give(n.x());
  // Images keep their channels last; the axis that is concatenated must be the last one.
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (rank == 4 && axis != 1) order = {0, 2, 3, 1};
  order.erase(std::find(order.begin(), order.end(), axis));
  order.push_back(axis);
  std::vector<std::string> steps;
  Extent sum;
  Value first;
  for (const Part& part : parts_of(n, axis, rank)) {
    const Value x = importer.ordered(part.x, order);
    if (steps.empty()) first = x;
    for (int k = 0; k < static_cast<int>(rank); ++k) {
      const auto at = static_cast<size_t>(k);
      if (k != axis && !(importer.shape(x)[at] == importer.shape(first)[at]))
        throw Refusal{"of inputs that differ in shape"};
    }
    sum = sum + Extent{importer.extent(x, axis)} + Extent{part.before} + Extent{part.after};
    steps.push_back(x.step);
    if (part.before + part.after == 0) continue;
    const size_t held = x.storage->axes.size();
    std::vector<int64_t> pads(2 * held, 0);
    pads[held - 1] = part.before;
    pads.back() = part.after;
    steps.back() = importer.add(x.step + "_pad",
                                make_layer("pad", {.options = {{"pads", pads}, {"value", 0.0}}}),
                                {x.step});
  }
  Value y = first;
  y.step = steps.size() == 1
               ? steps[0]
               : importer.add(importer.step_name(n.node), std::make_shared<Concat>(), steps);
  y.axes[static_cast<size_t>(axis)] = importer.atoms().group(sum.n);
  y.storage = std::make_shared<Storage>(*first.storage);
  y.storage->axes.back() = y.axes[static_cast<size_t>(axis)];
  n.give(std::move(y));
}

/// Whether only an operator of two values reads the node's output, whose other operand has this
/// shape: it repeats the elements itself.
bool is_repeated_by_reader(const NodeImport& n, const std::vector<Extent>& shape) {
  const std::string& output = n.node.outputs[0];
  for (const char* const op_type : {"Add", "Sub", "Mul", "Div"}) {
    const Node* const reader = n.importer.only_reader(output, op_type);
    if (reader == nullptr) continue;
    const Value other = n.importer.value(reader->inputs[reader->inputs[0] == output ? 1 : 0]);
    return other.constant == nullptr && !other.is_lost && n.importer.shape(other) == shape;
  }
  return false;
}

/// Expand to the shape that the value has, or that the next operator makes of it, as in
/// torch.nn.functional.normalize.
void expand(NodeImport& n) {
  const Value& x = n.x();
  const std::vector<Extent> wanted = n.constant(1).extents();
  std::vector<Extent> shape = n.importer.shape(x);
  if (wanted.size() > shape.size()) throw Refusal{"repeats elements"};
  bool repeats = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Extent& extent = shape[shape.size() - wanted.size() + i];
    if (wanted[i] == Extent{1} || wanted[i] == extent) continue;
    repeats = true;
    if (!(extent == Extent{1})) throw Refusal{"to a shape that its input does not fit"};
    extent = wanted[i];
  }
  if (repeats && !is_repeated_by_reader(n, shape)) throw Refusal{"repeats elements"};
  n.give(x);
}

}  // namespace

void add_moves(HandlerTable& table) {
  table["Identity"] = identity;
  table["Cast"] = cast;
  table["Concat"] = concat;
  table["Dropout"] = dropout;
  table["Expand"] = expand;
  table["Flatten"] = flatten;
  table["Gather"] = gather;
  table["Reshape"] = reshape;
  table["Slice"] = slice;
  table["Split"] = split;
  table["Squeeze"] = squeeze;
  table["Transpose"] = transpose;
  table["Unsqueeze"] = unsqueeze;
}

}  // namespace quantrain::onnx
