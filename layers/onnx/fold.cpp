#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "framework/core/shape.hpp"
#include "layers/onnx/constant.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/fold_arithmetic.hpp"

namespace quantrain::onnx {
// Handlers of import_*.cpp have the same names.
namespace constants {
namespace {

using Dims = std::vector<int64_t>;

/// What the functions below need to fold one node.
struct Folding {
  const Node& node;
  const std::vector<ConstantPtr>& inputs;
  int64_t opset;
  FoldBudget& budget;

  const Constant& in(size_t i) const {
    if (!has(i)) throw Refusal{"lacks input " + std::to_string(i)};
    return *inputs[i];
  }
  bool has(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(in(i).dims.size()); }
  /// An empty constant of x's type, with room for the elements of dims.
  Constant like(const Constant& x, Dims dims) const {
    if (dims.size() > Shape::kMaxRank) throw Refusal{"more than 8 axes"};
    budget.take(product(dims));
    Constant y;
    y.dims = std::move(dims);
    if (!x.is_float()) y.values = std::vector<Extent>();
    return y;
  }
  /// The axes that an input (newer operator sets) or an attribute names.
  std::vector<int> axes(size_t input, int64_t of_rank) const {
    return checked_axes(has(input) ? in(input).integers() : node.get("axes", Dims()), of_rank);
  }
};

/// y[i] = x[source(i)] for all i.
template <class Source>
Constant moved(const Folding& f, const Constant& x, Dims dims, const Source& source) {
  Constant y = f.like(x, std::move(dims));
  const int64_t n = product(y.dims);
  std::visit(
      [&](const auto& from) {
        auto& to = std::get<std::decay_t<decltype(from)>>(y.values);
        to.reserve(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) to.push_back(from[static_cast<size_t>(source(i))]);
      },
      x.values);
  return y;
}

Constant reshaped(const Folding& f, const Constant& x, Dims dims) {
  if (product(dims) != x.elements()) throw Refusal{"reshapes a constant to another size"};
  Constant y = f.like(x, std::move(dims));
  y.values = x.values;
  return y;
}

/// x with its axis `axis` seen as [outer, extent, inner].
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;

  AxisView(const Dims& dims, int axis) : extent(dims[static_cast<size_t>(axis)]) {
    for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
      if (i < axis) outer *= dims[static_cast<size_t>(i)];
      if (i > axis) inner *= dims[static_cast<size_t>(i)];
    }
  }
};

/// Takes these places of an axis, in this order.
Constant taken(const Folding& f, const Constant& x, int axis, const Dims& places, Dims dims) {
  const AxisView view(x.dims, axis);
  const auto count = static_cast<int64_t>(places.size());
  return moved(f, x, std::move(dims), [&](int64_t i) {
    const int64_t outer = i / (count * view.inner);
    const int64_t place = places[static_cast<size_t>(i / view.inner % count)];
    return (outer * view.extent + place) * view.inner + i % view.inner;
  });
}

Constant gather(const Folding& f) {
  const Constant& x = f.in(0);
  const int axis = checked_axis(f.node.get("axis", int64_t{0}), f.rank(0));
  const int64_t extent = x.dims[static_cast<size_t>(axis)];
  Dims places = f.in(1).integers();
  for (int64_t& place : places) {
    if (place < -extent || place >= extent) throw Refusal{"an index lies outside of its axis"};
    if (place < 0) place += extent;
  }
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), f.in(1).dims.begin(), f.in(1).dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return taken(f, x, axis, places, std::move(dims));
}

Constant unsqueeze(const Folding& f) {
  const Constant& x = f.in(0);
  const size_t more = f.has(1) ? f.in(1).integers().size() : f.node.get("axes", Dims()).size();
  const std::vector<int> axes = f.axes(1, f.rank(0) + static_cast<int64_t>(more));
  Dims dims = x.dims;
  for (const int axis : axes) dims.insert(dims.begin() + axis, 1);
  return reshaped(f, x, std::move(dims));
}

Constant squeeze(const Folding& f) {
  const Constant& x = f.in(0);
  const std::vector<int> axes = f.axes(1, f.rank(0));
  Dims dims;
  for (int i = 0; i < f.rank(0); ++i) {
    const int64_t extent = x.dims[static_cast<size_t>(i)];
    const bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (named && extent != 1) throw Refusal{"squeezes an axis that has not the extent 1"};
    if (axes.empty() ? extent != 1 : !named) dims.push_back(extent);
  }
  return reshaped(f, x, std::move(dims));
}

Constant concat(const Folding& f) {
  const int axis = checked_axis(f.node.get("axis", int64_t{0}), f.rank(0));
  Dims dims = f.in(0).dims;
  int64_t& sum = dims[static_cast<size_t>(axis)];
  sum = 0;
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    Dims other = f.in(i).dims;
    if (other.size() != dims.size() || f.in(i).is_float() != f.in(0).is_float())
      throw Refusal{"its inputs differ in rank or type"};
    if (__builtin_add_overflow(sum, other[static_cast<size_t>(axis)], &sum))
      throw Refusal{"a shape overflows"};
    other[static_cast<size_t>(axis)] = 0;
    Dims first = f.in(0).dims;
    first[static_cast<size_t>(axis)] = 0;
    if (other != first) throw Refusal{"its inputs differ in shape"};
  }
  Constant y = f.like(f.in(0), dims);
  if (product(dims) == 0) return y;
  const AxisView view(dims, axis);
  std::visit(
      [&](auto& to) {
        using Values = std::decay_t<decltype(to)>;
        for (int64_t outer = 0; outer < view.outer; ++outer) {
          for (const ConstantPtr& x : f.inputs) {
            const int64_t n = x->dims[static_cast<size_t>(axis)] * view.inner;
            const auto first = std::get<Values>(x->values).begin() + outer * n;
            to.insert(to.end(), first, first + n);
          }
        }
      },
      y.values);
  return y;
}

Constant cast(const Folding& f) {
  const Constant& x = f.in(0);
  const auto to = static_cast<ElementType>(f.node.get("to", int64_t{0}));
  if (bits_of(to) == 0) throw Refusal{"casts to " + std::string(name_of(to))};
  if (is_float(to)) {
    Constant y = f.like(x, x.dims);
    y.values = x.floats();
    return y;
  }
  Constant y = f.like(x, x.dims);
  std::vector<Extent> values;
  if (!x.is_float()) {
    values = x.extents();
  } else {
    for (const float v : x.floats()) {
      if (!(std::abs(v) < 0x1p62f)) throw Refusal{"casts a float that is no integer's value"};
      values.push_back({static_cast<int64_t>(v)});
    }
  }
  const auto [least, most] = range_of(to);
  for (Extent& value : values) {
    if (to == ElementType::kBool) value = {value.n != 0 ? 1 : 0};
    if (value.n < least || value.n > most)
      throw Refusal{"casts a number beyond " + std::string(name_of(to))};
  }
  y.values = std::move(values);
  return y;
}

Constant constant(const Folding& f) {
  const Attribute* const tensor = f.node.find("value");
  if (tensor != nullptr && std::holds_alternative<StoredTensor>(tensor->value)) {
    const StoredTensor& stored = std::get<StoredTensor>(tensor->value);
    return to_constant(stored);
  }
  if (f.node.find("value_float") != nullptr)
    return {{}, std::vector{f.node.get("value_float", 0.0f)}};
  if (f.node.find("value_int") != nullptr)
    return {{}, std::vector{Extent{f.node.get("value_int", int64_t{0})}}};
  if (f.node.find("value_floats") != nullptr) {
    const auto floats = f.node.get("value_floats", std::vector<float>());
    return {{static_cast<int64_t>(floats.size())}, floats};
  }
  if (f.node.find("value_ints") != nullptr) {
    std::vector<Extent> extents;
    for (const int64_t n : f.node.get("value_ints", Dims())) extents.push_back({n});
    return {{static_cast<int64_t>(extents.size())}, std::move(extents)};
  }
  throw Refusal{"has a value that is neither numbers nor a dense tensor"};
}

Constant constant_of_shape(const Folding& f) {
  Constant value{{1}, std::vector<float>{0.0f}};
  const Attribute* const tensor = f.node.find("value");
  if (tensor != nullptr && std::holds_alternative<StoredTensor>(tensor->value))
    value = to_constant(std::get<StoredTensor>(tensor->value));
  if (value.elements() != 1) throw Refusal{"has a value of more than one element"};
  return moved(f, value, f.in(0).integers(), [](int64_t) { return 0; });
}

Constant slice(const Folding& f) {
  const Constant& x = f.in(0);
  const Dims starts = f.has(1) ? f.in(1).integers() : f.node.get("starts", Dims());
  const Dims ends = f.has(2) ? f.in(2).integers() : f.node.get("ends", Dims());
  Dims axes = f.has(3) ? f.in(3).integers() : f.node.get("axes", Dims());
  const Dims steps = f.has(4) ? f.in(4).integers() : Dims(starts.size(), 1);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw Refusal{"its lists differ in length"};
  checked_axes(axes, f.rank(0));
  Constant y = x;
  for (size_t k = 0; k < starts.size(); ++k) {
    const int axis = checked_axis(axes[k], f.rank(0));
    const SliceRange range =
        slice_range(y.dims[static_cast<size_t>(axis)], starts[k], ends[k], steps[k]);
    Dims places;
    f.budget.take(range.count);
    for (int64_t i = 0; i < range.count; ++i) places.push_back(range.start + i * range.step);
    Dims dims = y.dims;
    dims[static_cast<size_t>(axis)] = range.count;
    y = taken(f, y, axis, places, std::move(dims));
  }
  return y;
}

Constant range(const Folding& f) {
  const Constant& start = f.in(0);
  if (start.elements() != 1 || f.in(1).elements() != 1 || f.in(2).elements() != 1)
    throw Refusal{"its bounds are not single numbers"};
  const double first = start.is_float() ? start.floats()[0] : 0.0;
  if (start.is_float()) {
    const double limit = f.in(1).floats()[0];
    const double delta = f.in(2).floats()[0];
    const double count = std::ceil((limit - first) / delta);
    if (!(count < 0x1p40)) throw Refusal{"has too many elements"};
    Constant y = f.like(start, {count > 0 ? static_cast<int64_t>(count) : 0});
    std::vector<float> values;
    for (int64_t i = 0; i < y.dims[0]; ++i)
      values.push_back(static_cast<float>(first + static_cast<double>(i) * delta));
    y.values = std::move(values);
    return y;
  }
  const Extent delta = f.in(2).extents()[0];
  const Extent from = start.extents()[0];
  const Extent span = f.in(1).extents()[0] - from;
  if (span.batch || delta.batch || from.batch) throw Refusal{"depends on the number of samples"};
  if (delta.n == 0 || delta.n == std::numeric_limits<int64_t>::min())
    throw Refusal{"has an invalid step"};
  const bool is_empty = span.n == 0 || (span.n < 0) != (delta.n < 0);
  const int64_t count = is_empty ? 0 : span.n / delta.n + (span.n % delta.n != 0 ? 1 : 0);
  Constant y = f.like(start, {count});
  std::vector<Extent> values;
  for (int64_t i = 0; i < count; ++i) values.push_back({from.n + i * delta.n});
  y.values = std::move(values);
  return y;
}

Constant reshape(const Folding& f) {
  const Constant& x = f.in(0);
  Dims dims = f.in(1).integers();
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && f.node.get("allowzero", int64_t{0}) == 0) {
      if (i >= x.dims.size()) throw Refusal{"copies an extent that its input does not have"};
      dims[i] = x.dims[i];
    }
    if (dims[i] == -1) {
      if (open) throw Refusal{"leaves two extents open"};
      open = i;
      continue;
    }
    if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
      throw Refusal{"has an invalid shape"};
  }
  if (open) dims[*open] = known == 0 ? 0 : x.elements() / known;
  return reshaped(f, x, std::move(dims));
}

Constant flatten(const Folding& f) {
  const Constant& x = f.in(0);
  const int64_t axis = f.node.get("axis", int64_t{1});
  const int64_t rank = f.rank(0);
  if (axis < -rank || axis > rank) throw Refusal{"axis does not exist"};
  const auto middle = x.dims.begin() + (axis < 0 ? axis + rank : axis);
  return reshaped(f, x, {product({x.dims.begin(), middle}), product({middle, x.dims.end()})});
}

Constant transpose(const Folding& f) {
  const Constant& x = f.in(0);
  const size_t rank = x.dims.size();
  Dims perm = f.node.get("perm", Dims());
  if (f.node.find("perm") == nullptr) {
    for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(rank - 1 - i));
  }
  if (perm.size() != rank) throw Refusal{"perm does not name each axis once"};
  checked_axes(perm, static_cast<int64_t>(rank));
  Dims dims, strides(rank, 1), stride_of;
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * x.dims[i];
  for (const int64_t axis : perm) {
    const auto from = static_cast<size_t>(checked_axis(axis, static_cast<int64_t>(rank)));
    dims.push_back(x.dims[from]);
    stride_of.push_back(strides[from]);
  }
  return moved(f, x, dims, [&](int64_t i) {
    int64_t source = 0;
    for (size_t k = rank; k-- > 0;) {
      source += i % dims[k] * stride_of[k];
      i /= dims[k];
    }
    return source;
  });
}

Constant expand(const Folding& f) {
  const Constant& x = f.in(0);
  const Dims dims = broadcast(x.dims, f.in(1).integers());
  const BroadcastIndex index(x.dims, dims);
  return moved(f, x, dims, [&](int64_t i) { return index(i); });
}

Constant identity(const Folding& f) { return f.in(0); }

std::vector<ConstantPtr> split(const Folding& f) {
  const Constant& x = f.in(0);
  const int axis = checked_axis(f.node.get("axis", int64_t{0}), f.rank(0));
  const Dims given = f.has(1) ? f.in(1).integers() : f.node.get("split", Dims());
  std::vector<ConstantPtr> parts;
  int64_t first = 0;
  for (const int64_t size : split_sizes(f.node, x.dims[static_cast<size_t>(axis)], given)) {
    f.budget.take(size);
    Dims places(static_cast<size_t>(size));
    std::iota(places.begin(), places.end(), first);
    first += size;
    Dims dims = x.dims;
    dims[static_cast<size_t>(axis)] = size;
    parts.push_back(std::make_shared<Constant>(taken(f, x, axis, places, std::move(dims))));
  }
  return parts;
}

using Fold = std::function<Constant(const Folding&)>;

const std::map<std::string, Fold>& folds() {
  static const std::map<std::string, Fold> all = [] {
    std::map<std::string, Fold> table{{"Cast", cast},
                                      {"Concat", concat},
                                      {"Constant", constant},
                                      {"ConstantOfShape", constant_of_shape},
                                      {"Expand", expand},
                                      {"Flatten", flatten},
                                      {"Gather", gather},
                                      {"Identity", identity},
                                      {"Range", range},
                                      {"Reshape", reshape},
                                      {"Slice", slice},
                                      {"Squeeze", squeeze},
                                      {"Transpose", transpose},
                                      {"Unsqueeze", unsqueeze}};
    for (const std::string& op_type : arithmetic_names()) {
      table[op_type] = [op_type](const Folding& f) {
        std::vector<const Constant*> inputs;
        for (size_t i = 0; i < f.inputs.size(); ++i) inputs.push_back(&f.in(i));
        return fold_arithmetic(op_type, inputs, f.budget);
      };
    }
    return table;
  }();
  return all;
}

}  // namespace
}  // namespace constants

bool is_foldable(const std::string& op_type) {
  return op_type == "Split" || constants::folds().contains(op_type);
}

std::vector<ConstantPtr> fold(const Node& node,
                              const std::vector<ConstantPtr>& inputs,
                              int64_t opset,
                              FoldBudget& budget) {
  const constants::Folding folding{node, inputs, opset, budget};
  for (const ConstantPtr& input : inputs) budget.take(input == nullptr ? 0 : input->elements());
  if (node.op_type == "Split") return constants::split(folding);
  if (node.op_type == "Identity" && folding.has(0)) return {inputs[0]};
  return {std::make_shared<const Constant>(constants::folds().at(node.op_type)(folding))};
}

ConstantPtr fold_shape(const Node& node, const std::vector<Extent>& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (node.op_type == "Size") {
    Extent size{1};
    for (const Extent& extent : shape) size = size * extent;
    return std::make_shared<const Constant>(Constant{{}, std::vector{size}});
  }
  const auto place = [&](int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank);
  };
  const int64_t start = place(node.get("start", int64_t{0}));
  const int64_t end = std::max(start, place(node.get("end", rank)));
  return std::make_shared<const Constant>(
      Constant{{end - start}, std::vector<Extent>(shape.begin() + start, shape.begin() + end)});
}

}  // namespace quantrain::onnx
