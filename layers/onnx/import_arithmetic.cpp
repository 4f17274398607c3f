#include <algorithm>
#include <numeric>
#include <utility>

#include "layers/activation.hpp"
#include "layers/add.hpp"
#include "layers/mul.hpp"
#include "layers/network/layer_type.hpp"
#include "layers/onnx/import_window.hpp"
#include "layers/onnx/importer.hpp"

// Operators of two values, or of a value and a constant, element by element; and Softmax.
namespace quantrain::onnx {
namespace {

/// The order of the file's axes in our tensor, if each of its axes is one of the file's; else the
/// usual order.
std::vector<int> order_of(const Value& x) {
  std::vector<int> order;
  std::vector<bool> used(x.axes.size(), false);
  for (const Group& held : x.storage->axes) {
    for (size_t i = 0; i < x.axes.size(); ++i) {
      if (used[i] || x.axes[i] != held) continue;
      used[i] = true;
      order.push_back(static_cast<int>(i));
      break;
    }
  }
  if (order.size() == x.axes.size() && order.size() == x.storage->axes.size()) return order;
  order.resize(x.axes.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() == 4) order = {0, 2, 3, 1};
  return order;
}

/// The two values with equal axes in our tensors.
std::pair<Value, Value> aligned(Importer& importer, const Value& a, const Value& b) {
  if (a.rank() != b.rank()) throw Refusal{"of values that differ in the number of axes"};
  const bool a_decides = a.storage->is_settled || !b.storage->is_settled;
  const Value& decides = a_decides ? a : b;
  importer.settle(decides, decides.rank() == 4);
  const std::vector<int> order = order_of(decides);
  return {importer.ordered(a, order), importer.ordered(b, order)};
}

/// Of two computed values.
Value combined(NodeImport& n, const std::string& op_type, const Value& first, const Value& second) {
  Importer& importer = n.importer;
  const auto [a, b] = aligned(importer, first, second);
  const std::vector<Extent> of_a = importer.shape(a), of_b = importer.shape(b);
  bool a_repeats = false, b_repeats = false;
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i] == of_b[i]) continue;
    if (!(of_a[i] == Extent{1}) && !(of_b[i] == Extent{1}))
      throw Refusal{"of shapes that do not broadcast"};
    (of_a[i] == Extent{1} ? a_repeats : b_repeats) = true;
  }
  if (a_repeats && b_repeats) throw Refusal{"of values that repeat each other"};
  const bool repeats = a_repeats || b_repeats;
  const Value& larger = a_repeats ? b : a;
  const std::vector<std::string> steps{a.step, b.step};
  if (op_type == "Add" && !repeats)
    return importer.function_of(larger, std::make_shared<Add>(), steps);
  if (op_type == "Mul") {
    // One factor for each channel of each sample, or for each element.
    const std::vector<Extent>& smaller = a_repeats ? of_a : of_b;
    const std::vector<int> order = order_of(larger);
    bool are_factors = true;
    for (size_t k = 1; k + 1 < order.size(); ++k)
      are_factors = are_factors && smaller[static_cast<size_t>(order[k])] == Extent{1};
    if (repeats && !(smaller[static_cast<size_t>(order.back())] ==
                     (a_repeats ? of_b : of_a)[static_cast<size_t>(order.back())]))
      are_factors = false;
    if (!repeats || are_factors)
      return importer.function_of(larger, std::make_shared<Mul>(), steps);
  }
  const std::string name = op_type == "Add"   ? "add"
                           : op_type == "Sub" ? "sub"
                           : op_type == "Mul" ? "mul"
                                              : "div";
  return importer.function_of(larger, make_layer(name, {}), steps);
}

/// Of a computed value and a constant; is_left: the constant is the left operand.
Value with_constant(NodeImport& n,
                    const std::string& op_type,
                    const Value& given,
                    const Constant& constant,
                    bool is_left,
                    const std::string& constant_name) {
  Importer& importer = n.importer;
  if (static_cast<int64_t>(constant.dims.size()) > given.rank())
    throw Refusal{"with a constant of more axes"};
  const size_t shift = static_cast<size_t>(given.rank()) - constant.dims.size();
  std::vector<int> axes;  // along which the constant varies
  for (size_t i = 0; i < constant.dims.size(); ++i) {
    if (constant.dims[i] == 1) continue;
    const int axis = static_cast<int>(i + shift);
    if (importer.extent(given, axis) != constant.dims[i])
      throw Refusal{"repeats its input along a constant"};
    axes.push_back(axis);
  }
  std::vector<float> values = constant.floats();
  Value x = given;
  if (!axes.empty()) {
    Importer::Last last = importer.with_last(given, axes);
    x = last.x;
    values = permuted(values, importer.permutation(last));
  }
  // Whole vectors are trained; a single number belongs to the formula.
  const bool is_parameter = values.size() > 1;
  const auto count = static_cast<int64_t>(values.size());
  const std::string tensor = importer.add_tensor(
      constant_name.empty() ? "constant" : constant_name, tensor_of({count}, values), is_parameter);
  const char* const name = op_type == "Add"   ? "add"
                           : op_type == "Sub" ? "sub"
                           : op_type == "Mul" ? "mul"
                                              : "div";
  std::vector<std::string> steps{x.step, tensor};
  if (is_left) std::swap(steps[0], steps[1]);
  return importer.function_of(x, make_layer(name, {}), steps);
}

void binary(NodeImport& n) {
  if (n.inputs.size() != 2) throw Refusal{"has not two inputs"};
  const std::string& op_type = n.node.op_type;
  if (!n.is_constant(0) && !n.is_constant(1)) return n.give(combined(n, op_type, n.x(0), n.x(1)));
  const size_t constant = n.is_constant(0) ? 0 : 1;
  n.give(with_constant(
      n, op_type, n.x(1 - constant), n.constant(constant), constant == 0, n.node.inputs[constant]));
}

void sum(NodeImport& n, bool divides) {
  Value y = n.x(0);
  if (n.inputs.size() > 1) {
    std::vector<std::string> steps;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const auto [a, b] = aligned(n.importer, y, n.x(i));
      if (n.importer.shape(a) != n.importer.shape(b)) throw Refusal{"of shapes that differ"};
      if (i == 0) {
        y = a;
        steps.push_back(a.step);
        continue;
      }
      steps.push_back(b.step);
    }
    y = n.importer.function_of(y, std::make_shared<Add>(), steps);
  }
  if (divides && n.inputs.size() > 1)
    y = n.importer.scaled(y, 1.0f / static_cast<float>(n.inputs.size()));
  n.give(std::move(y));
}

void prelu(NodeImport& n) {
  Importer& importer = n.importer;
  const Value& given = n.x();
  const Constant& slope = n.constant(1);
  if (slope.elements() == 1) {
    n.give(importer.function_of(given, std::make_shared<PReLU>(tensor_of({1}, slope.floats()))));
    return;
  }
  const size_t shift = static_cast<size_t>(given.rank()) -
                       std::min(slope.dims.size(), static_cast<size_t>(given.rank()));
  for (size_t i = 0; i < slope.dims.size(); ++i) {
    if (slope.dims[i] == 1) continue;
    const int axis = static_cast<int>(i + shift);
    const auto slopes =
        axis < given.rank() ? along_axis(importer, slope, given, axis) : std::nullopt;
    if (!slopes) break;
    const Importer::Last last = importer.with_last(given, axis);
    Value y = last.x;
    y.step = importer.add(
        importer.step_name(n.node, n.node.inputs[1]),
        std::make_shared<PReLU>(tensor_of({static_cast<int64_t>(slopes->size())},
                                          permuted(*slopes, importer.permutation(last)))),
        {last.x.step});
    n.give(std::move(y));
    return;
  }
  throw Refusal{"with slopes along several axes"};
}

void softmax(NodeImport& n, bool is_log) {
  const Value& x = n.x();
  const bool is_old = n.importer.opset() < 13;
  const int axis = checked_axis(n.node.get("axis", int64_t{is_old ? 1 : -1}), x.rank());
  std::vector<int> axes{axis};
  // Older operator sets: over all axes from this one on.
  for (int i = axis + 1; is_old && i < x.rank(); ++i) axes.push_back(i);
  const Value arranged = n.importer.with_last(x, axes).x;
  std::shared_ptr<Module> layer;
  if (is_log) {
    layer = make_layer("log_softmax", {});
  } else {
    layer = std::make_shared<Softmax>();
  }
  n.give(n.importer.function_of(arranged, std::move(layer)));
}

}  // namespace

void add_arithmetic(HandlerTable& table) {
  for (const char* const op_type : {"Add", "Sub", "Mul", "Div"}) table[op_type] = binary;
  table["Neg"] = [](NodeImport& n) { n.give(n.importer.scaled(n.x(), -1.0f)); };
  table["Reciprocal"] = [](NodeImport& n) {
    const Constant one{{}, std::vector<float>{1.0f}};
    n.give(with_constant(n, "Div", n.x(), one, true, "number"));
  };
  table["Sum"] = [](NodeImport& n) { sum(n, false); };
  table["Mean"] = [](NodeImport& n) { sum(n, true); };
  table["PRelu"] = prelu;
  table["Softmax"] = [](NodeImport& n) { softmax(n, false); };
  table["LogSoftmax"] = [](NodeImport& n) { softmax(n, true); };
}

}  // namespace quantrain::onnx
