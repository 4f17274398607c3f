#include "layers/onnx/importer.hpp"

#include <algorithm>
#include <utility>

#include "framework/core/error.hpp"

namespace quantrain::onnx {
namespace {

Value lost_value() {
  Value value;
  value.is_lost = true;
  return value;
}

Value constant_value(ConstantPtr constant) {
  Value value;
  value.constant = std::move(constant);
  return value;
}

/// Whether all inputs that are there are constants.
bool all_constant(const NodeImport& import) {
  for (size_t i = 0; i < import.inputs.size(); ++i) {
    if (import.has(i) && !import.is_constant(i)) return false;
  }
  return true;
}

/// Whether the node gives the shape of its input, which need not be a constant.
bool is_shape(const Node& node) { return node.op_type == "Shape" || node.op_type == "Size"; }

/// Whether quant/import/onnx, which this folder may not use, reads the node.
bool is_quantized(const Node& node) {
  const std::string& type = node.op_type;
  return type == "QuantizeLinear" || type == "DequantizeLinear" || type.starts_with("QLinear") ||
         (!node.domain.empty() &&
          (type == "QGemm" || type == "Quant" || type == "BipolarQuant" || type == "Trunc"));
}

}  // namespace

Importer::Importer(const Model& model,
                   const std::map<std::string, std::vector<int64_t>>& shapes,
                   int64_t described_constants,
                   HandlerTable own)
    : model_(model),
      own_(std::move(own)),
      opset_(model.opset()),
      budget_(std::clamp(described_constants, int64_t{0}, int64_t{1} << 40), model.file_bytes) {
  for (const StoredTensor& tensor : model.graph.initializers) initializers_[tensor.name] = &tensor;
  for (const ValueInfo& output : model.graph.outputs) outputs_.insert(output.name);
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    for (const std::string& input : model.graph.nodes[i].inputs) readers_[input].push_back(i);
  }
  for (const ValueInfo& input : model.graph.inputs) {
    if (initializers_.contains(input.name)) continue;
    const auto given = shapes.find(input.name);
    add_input(input, given == shapes.end() ? nullptr : &given->second);
  }
  for (const auto& [name, shape] : shapes) {
    if (!values_.contains(name))
      throw DataError(
          "onnx", model.path, ": a shape is given for \"", name, "\", which is no input");
  }
}

void Importer::add_input(const ValueInfo& info, const std::vector<int64_t>* shape) {
  const auto fail = [&](const char* text) {
    throw DataError("onnx", model_.path, ": the input \"", info.name, "\" ", text);
  };
  std::vector<int64_t> dims;
  if (shape != nullptr) {
    dims = *shape;
  } else {
    if (!info.has_shape) fail("has no shape: give it in OnnxOptions::shapes");
    for (const Dimension& dimension : info.dims) dims.push_back(dimension.value);
  }
  if (dims.empty()) fail("is a single number, without an axis for the samples of a batch");
  if (dims[0] > 1) {
    if (declared_batch_ > 1 && declared_batch_ != dims[0])
      fail("has another number of samples than the input before it");
    declared_batch_ = dims[0];
  }
  Value value;
  value.axes = {{kBatch}};
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] < 1)
      fail(
          "has an axis other than the first whose extent is not known: give it in "
          "OnnxOptions::shapes");
    value.axes.push_back(atoms_.group(dims[i]));
  }
  try {
    constexpr int64_t kMostElements = int64_t{1} << 48;
    if (product({dims.begin() + 1, dims.end()}) > kMostElements) fail("has a shape that overflows");
  } catch (const Refusal&) {
    fail("has a shape that overflows");
  }
  count(product({dims.begin() + 1, dims.end()}));
  value.step = take_name(info.name, true);
  value.storage = std::make_shared<Storage>(Storage{value.axes, false});
  values_[info.name] = value;
}

void Importer::count(int64_t elements) {
  constexpr int64_t kMostSum = int64_t{1} << 62;  // the sum of two does not overflow
  all_values_ = std::min(all_values_ + std::min(elements, kMostSum - 1), kMostSum - 1);
}

std::vector<bool> Importer::needed() const {
  const std::vector<Node>& nodes = model_.graph.nodes;
  std::vector<bool> is_needed(nodes.size(), false);
  std::set<std::string> names = outputs_;
  for (size_t i = nodes.size(); i-- > 0;) {
    const std::vector<std::string>& outputs = nodes[i].outputs;
    is_needed[i] = std::any_of(outputs.begin(), outputs.end(), [&](const std::string& name) {
      return names.contains(name);
    });
    if (is_needed[i]) names.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
  }
  return is_needed;
}

Value Importer::value(const std::string& name) {
  const auto known = values_.find(name);
  if (known != values_.end()) return known->second;
  const auto stored = initializers_.find(name);
  if (stored == initializers_.end()) return lost_value();
  return values_[name] =
             constant_value(std::make_shared<const Constant>(to_constant(*stored->second)));
}

void Importer::run() {
  const std::vector<bool> is_needed = needed();
  for (size_t i = 0; i < is_needed.size(); ++i) {
    if (is_needed[i] && !absorbed_.contains(i)) import_node(i);
  }
  if (!refused_.empty()) report();
  finish_outputs();
  finish_inputs();
}

void Importer::import_node(size_t index) {
  const Node& node = model_.graph.nodes[index];
  current_ = &node;
  NodeImport import{*this, node, {}};
  bool is_lost = false;
  for (const std::string& input : node.inputs) {
    import.inputs.push_back(input.empty() ? Value() : value(input));
    is_lost = is_lost || import.inputs.back().is_lost;
  }
  try {
    check_known(import);
    if (!is_lost) compute(import);
    for (size_t i = import.outputs.size(); !is_lost && i < node.outputs.size(); ++i) {
      const std::string& output = node.outputs[i];
      if (readers_.contains(output) || outputs_.contains(output))
        throw Refusal{"its output " + std::to_string(i)};
    }
  } catch (const Refusal& refusal) {
    refused_.add(node, refusal.reason);
    import.outputs.clear();
  } catch (const ShapeError& error) {
    refused_.add(node, error.what());
    import.outputs.clear();
  }
  import.outputs.resize(node.outputs.size(), lost_value());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) values_[node.outputs[i]] = std::move(import.outputs[i]);
  }
}

const Handler* Importer::handler(const Node& node) const {
  const bool is_own = !node.domain.empty();
  const HandlerTable& table = is_own ? own_ : handlers();
  const auto found = table.find(is_own ? node.domain + "." + node.op_type : node.op_type);
  return found == table.end() ? nullptr : &found->second;
}

void Importer::check_known(const NodeImport& import) const {
  const Node& node = import.node;
  const bool is_known = handler(node) != nullptr;
  if (!is_known && is_quantized(node))
    throw Refusal{"of a quantized network, which quant::import_quantized_onnx() reads"};
  if (!node.domain.empty() && !is_known)
    throw Refusal{"of the domain " + node.domain + ", which is not ONNX's own"};
  const bool folds = all_constant(import) && is_foldable(node.op_type);
  if (!folds && !is_shape(node) && !is_known) throw Refusal{""};
}

void Importer::compute(NodeImport& import) {
  const Node& node = import.node;
  if (is_shape(node)) {
    std::vector<Extent> extents;
    if (import.is_constant(0)) {
      for (const int64_t n : import.constant(0).dims) extents.push_back({n});
    } else {
      extents = shape(import.x());
    }
    import.outputs = {constant_value(fold_shape(node, extents))};
    return;
  }
  if (!all_constant(import)) {
    (*handler(node))(import);
    for (const Value& y : import.outputs) {
      const int64_t elements = atoms_.size(flat(y.axes));
      largest_value_ = std::max(largest_value_, elements);
      count(elements);
    }
    return;
  }
  if (!is_foldable(node.op_type)) throw Refusal{"of constants, which is not computed"};
  std::vector<ConstantPtr> constants;
  for (const Value& input : import.inputs) constants.push_back(input.constant);
  for (ConstantPtr& folded : fold(node, constants, opset_, budget_))
    import.outputs.push_back(constant_value(std::move(folded)));
}

void Importer::report() const {
  throw DataError("onnx", model_.path, ": uses what quantrain has no layer for:", refused_.list());
}

void Importer::finish_outputs() {
  for (const ValueInfo& info : model_.graph.outputs) {
    Value y = value(info.name);
    if (y.constant != nullptr)
      throw DataError("onnx", model_.path, ": the output \"", info.name, "\" is a constant");
    try {
      settle(y, y.axes.size() == 4);
      // The tensor's axes are the file's in another order, as of images; or they become the file's.
      Groups whole = y.axes;
      std::sort(whole.begin(), whole.end());
      Groups held = y.storage->axes;
      std::sort(held.begin(), held.end());
      if (whole != held) {
        Groups wanted{{kBatch}};
        for (Group axis : y.axes) {
          const bool was_batch = std::erase(axis, kBatch) > 0;
          if (!axis.empty() || !was_batch) wanted.push_back(std::move(axis));
        }
        y = arranged(y, wanted);
      }
      parts_.outputs.push_back(y.step);
      network_outputs_.push_back(y);
    } catch (const Refusal& refusal) {
      throw DataError("onnx", model_.path, ": the output \"", info.name, "\" ", refusal.reason);
    }
  }
}

void Importer::finish_inputs() {
  std::set<std::string> read(parts_.outputs.begin(), parts_.outputs.end());
  for (const NetworkStep& step : parts_.steps) read.insert(step.inputs.begin(), step.inputs.end());
  for (const ValueInfo& info : model_.graph.inputs) {
    if (initializers_.contains(info.name)) continue;
    const Value x = value(info.name);
    if (!read.contains(x.step)) continue;
    settle(x, x.axes.size() == 4);
    NetworkInput input{.name = x.step};
    for (size_t i = 1; i < x.storage->axes.size(); ++i)
      input.shape.push_back(atoms_.size(x.storage->axes[i]));
    parts_.inputs.push_back(std::move(input));
    network_inputs_.push_back(x);
  }
}

bool NodeImport::has(size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }

const Value& NodeImport::x(size_t i) const {
  if (!has(i)) throw Refusal{"lacks input " + std::to_string(i)};
  if (inputs[i].constant != nullptr)
    throw Refusal{"its input " + std::to_string(i) + " is a constant"};
  return inputs[i];
}

const Constant& NodeImport::constant(size_t i) const {
  if (!has(i)) throw Refusal{"lacks input " + std::to_string(i)};
  if (inputs[i].constant == nullptr)
    throw Refusal{"its input " + std::to_string(i) + " is computed, expected a constant"};
  importer.budget().take(inputs[i].constant->elements());
  return *inputs[i].constant;
}

float NodeImport::scalar(size_t i) const {
  const std::vector<float> floats = constant(i).floats();
  if (floats.size() != 1) throw Refusal{"its input " + std::to_string(i) + " is not one number"};
  return floats[0];
}

std::vector<int64_t> NodeImport::integers(size_t input,
                                          std::string_view attribute,
                                          std::vector<int64_t> otherwise) const {
  if (has(input)) return constant(input).integers();
  return node.get(attribute, std::move(otherwise));
}

const HandlerTable& handlers() {
  static const HandlerTable table = [] {
    HandlerTable all;
    add_products(all);
    add_pools(all);
    add_moves(all);
    add_images(all);
    add_functions(all);
    add_arithmetic(all);
    return all;
  }();
  return table;
}

}  // namespace quantrain::onnx
