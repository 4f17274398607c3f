#include "layers/network/operation_layer.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "layers/network/layer_type.hpp"

namespace quantrain {
namespace {

using Layer = std::shared_ptr<Module>;
using List = std::vector<int64_t>;

const Shape& shape_of(const Call& call, size_t i) { return call.node->input(i).shape(); }

bool of_one_shape(const Call& call) {
  const std::vector<Tensor>& x = call.node->inputs();
  return std::all_of(
      x.begin(), x.end(), [&](const Tensor& t) { return t.shape() == x[0].shape(); });
}

/// The operations that are a layer without options.
Layer plain_layer(const Call& call) {
  static const std::map<std::string_view, std::string_view> layers{
      {"abs", "Abs"},
      {"exp", "Exp"},
      {"flatten", "Flatten"},
      {"gelu", "GELU"},
      {"relu", "ReLU"},
      {"hard_sigmoid", "HardSigmoid"},
      {"relu6", "ReLU6"},
      {"sigmoid", "Sigmoid"},
      {"hard_swish", "HardSwish"},
      {"silu", "SiLU"},
      {"square", "Square"},
      {"softmax", "Softmax"},
      {"tanh", "Tanh"},
  };
  const auto found = layers.find(call.node->type());
  return found == layers.end() ? nullptr : make_layer(found->second, {});
}

bool has(const Attributes& attributes, std::string_view name) {
  return std::any_of(
      attributes.begin(), attributes.end(), [&](const auto& entry) { return entry.first == name; });
}

/// An attribute of one axis is a list of one number; a layer's member is the number.
Attribute size(const Attributes& a, std::string_view name, bool of_signals) {
  const List& list = a.integers(name);
  return of_signals ? Attribute(list.at(0)) : Attribute(list);
}

Layer pool(const Call& call) {
  const Attributes a = call.node->attributes();
  const bool of_signals = call.node->type().ends_with("1d");
  const bool is_max = call.node->type().starts_with("max");
  const std::string type = std::string(is_max ? "MaxPool" : "AvgPool") + (of_signals ? "1d" : "2d");
  return make_layer(type,
                    {.options = {{"kernel", size(a, "kernel", of_signals)},
                                 {"stride", size(a, "stride", of_signals)},
                                 {"padding", size(a, "padding", of_signals)},
                                 {"ceil_mode", int64_t{has(a, "end")}},
                                 {"count_include_pad", int64_t{has(a, "divisor")}}}});
}

Layer slice_layer(const Call& call, const std::string& place) {
  const Attributes a = call.node->attributes();
  const int64_t begin = a.integer("begin"), step = a.integer("step"), count = a.integer("count");
  if (a.integer("axis") == 0) {
    throw GraphError(place,
                     "operation slice takes some samples of the batch: a network works on each "
                     "sample");
  }
  Attributes options{{"axis", a.integer("axis")}, {"begin", begin}};
  const int64_t last = begin + (count - 1) * step;
  const int64_t end = count == 0 ? begin : last + (step > 0 ? 1 : -1);
  if (end >= 0) options.add("end", end);  // else: to the first element
  options.add("step", step);
  return make_layer("Slice", {.options = std::move(options)});
}

/// Zeros around images or signals, a channel of ones, or null.
Layer pad_layer(const Call& call) {
  const Attributes a = call.node->attributes();
  const List pads = a.integers("pads");
  const size_t rank = pads.size() / 2;
  const double value = a.real("value");
  const auto before = [&](size_t axis) { return pads[axis]; };
  const auto after = [&](size_t axis) { return pads[rank + axis]; };
  const bool one_after =
      rank >= 2 && after(rank - 1) == 1 &&
      std::count(pads.begin(), pads.end(), 0) == static_cast<std::ptrdiff_t>(pads.size()) - 1;
  if (value == 1.0 && one_after) return make_layer("OnesChannel", {});
  const bool borders = rank >= 3 && value == 0.0 && before(0) == 0 && after(0) == 0 &&
                       before(rank - 1) == 0 && after(rank - 1) == 0;
  if (borders && rank == 3)
    return make_layer("ZeroPad1d", {.options = {{"left", before(1)}, {"right", after(1)}}});
  if (borders && rank == 4) {
    return make_layer(
        "ZeroPad2d",
        {.options = {
             {"left", before(2)}, {"right", after(2)}, {"top", before(1)}, {"bottom", after(1)}}});
  }
  return nullptr;
}

/// Which extent of the result depends on the number of samples is seen by comparing two passes.
Layer reshape_layer(const Call& call, const Call& doubled, const std::string& place) {
  const Shape &one = call.output.shape(), &two = doubled.output.shape();
  List extents(one.begin(), one.end());
  std::vector<int> batch;
  for (int axis = 0; axis < one.rank() && one.rank() == two.rank(); ++axis) {
    if (one[axis] != two[axis]) batch.push_back(axis);
  }
  if (batch.size() != 1) {
    throw GraphError(place,
                     "operation reshape gives ",
                     one,
                     ", and ",
                     two,
                     " for twice as many samples: exactly one extent must grow with them");
  }
  const Shape& x = shape_of(call, 0);
  if (batch[0] == 0 && x.rank() > 0 && x[0] == one[0]) {
    extents.erase(extents.begin());
    const bool positive = std::all_of(extents.begin(), extents.end(), [](auto e) { return e > 0; });
    if (positive) return make_layer("Reshape", {.options = {{"sample", extents}}});
    extents.insert(extents.begin(), -1);
  }
  extents[static_cast<size_t>(batch[0])] = -1;
  return make_layer("reshape", {.options = {{"shape", extents}}});
}

/// The layer of operations that have options, or null.
Layer layer_with_options(const Call& call, const Call& doubled, const std::string& place) {
  const std::string_view type = call.node->type();
  const Attributes a = call.node->attributes();
  if (type == "add" && of_one_shape(call)) return make_layer("Add", {});
  if (type == "mul") {
    const Shape &x = shape_of(call, 0), &y = shape_of(call, 1);
    if (x == y || are_channel_factors(x, y) || are_channel_factors(y, x))
      return make_layer("Mul", {});
  }
  if (type == "concat") {
    const int64_t rank = call.output.rank(), axis = a.integer("axis");
    if (axis == -1 || axis == rank - 1) return make_layer("Concat", {});
  }
  if (type == "leaky_relu")
    return make_layer("LeakyReLU", {.options = {{"slope", a.real("alpha")}}});
  if (type == "elu") return make_layer("ELU", {.options = {{"alpha", a.real("alpha")}}});
  if (type == "clip")
    return make_layer("Clamp", {.options = {{"low", a.real("min")}, {"high", a.real("max")}}});
  if (type == "upsample_nearest")
    return make_layer("Upsample", {.options = {{"scale", a.integers("scale")}}});
  constexpr std::array<std::string_view, 4> kPools{
      "avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"};
  if (std::find(kPools.begin(), kPools.end(), type) != kPools.end()) return pool(call);
  if (type == "slice") return slice_layer(call, place);
  if (type == "pad") return pad_layer(call);
  if (type == "reshape") return reshape_layer(call, doubled, place);
  return nullptr;
}

}  // namespace

Layer operation_layer(const Call& call, const Call& doubled, const std::string& place) {
  const std::string_view type = call.node->type();
  if (Layer layer = plain_layer(call)) return layer;
  if (Layer layer = layer_with_options(call, doubled, place)) return layer;
  if (!(call.node->attributes() == doubled.node->attributes())) {
    throw GraphError(place,
                     "operation ",
                     type,
                     " depends on the number of samples: ",
                     call.node->attributes(),
                     "; for twice as many: ",
                     doubled.node->attributes());
  }
  if (find_layer_type(type) == nullptr) {
    throw GraphError(place,
                     "operation ",
                     type,
                     " is not known by its name: run it in a layer of quantrain if there is one, "
                     "or call register_operation at the start of the program "
                     "(layers/network/operation.hpp)");
  }
  return make_layer(type, {.options = call.node->attributes()});
}

}  // namespace quantrain
