#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "framework/core/rounding.hpp"
#include "layers/onnx/elements.hpp"
#include "quant/import/onnx/rewriter.hpp"

// Constants: codes of weights and of biases, and the numbers of scales.
namespace quantrain::onnx {
namespace {

StoredTensor float_tensor(std::string name,
                          std::vector<int64_t> dims,
                          const std::vector<float>& values) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  const std::span<const uint8_t> view(bytes->data(), bytes->size());
  return {std::move(name), ElementType::kFloat, std::move(dims), {std::move(bytes), view}};
}

/// Throws: Refusal if a value does not fit the type.
StoredTensor integer_tensor(std::string name,
                            ElementType type,
                            std::vector<int64_t> dims,
                            const std::vector<int64_t>& values) {
  const auto width = static_cast<size_t>(bits_of(type) / 8);
  const auto [least, most] = range_of(type);
  if (width == 0 || is_float(type)) throw Refusal{"of this type"};
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  for (const int64_t value : values) {
    if (value < least || value > most) throw Refusal{"a value that its type does not have"};
    for (size_t i = 0; i < width; ++i)
      bytes->push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  const std::span<const uint8_t> view(bytes->data(), bytes->size());
  return {std::move(name), type, std::move(dims), {std::move(bytes), view}};
}

}  // namespace

int ConstantCodes::bits() const {
  int bits = 1;
  while (least < 0 ? most >= int64_t{1} << (bits - 1) || least < -(int64_t{1} << (bits - 1))
                   : most >= int64_t{1} << bits)
    ++bits;
  return bits;
}

const StoredTensor& Rewriter::constant(const std::string& name) const {
  const auto found = constants_.find(name);
  if (found == constants_.end())
    throw Refusal{name.empty() ? "lacks an input"
                               : "\"" + name +
                                     "\" is computed, expected a "
                                     "constant"};
  return *found->second;
}

void Rewriter::spend(int64_t elements) {
  budget_ -= std::min(elements, budget_);
  if (budget_ == 0) throw Refusal{"constants become too large"};
}

std::vector<float> Rewriter::floats(const std::string& name) {
  spend(constant(name).elements());
  return floats_of(constant(name));
}

float Rewriter::number(const std::string& name) {
  const std::vector<float> all = floats(name);
  if (all.size() != 1) throw Refusal{"\"" + name + "\" is not one number"};
  return all[0];
}

ConstantCodes Rewriter::codes(const std::string& name) {
  const auto made = constant_codes_.find(name);
  if (made != constant_codes_.end()) {
    spend(std::ssize(made->second.values));
    return made->second;
  }
  const StoredTensor& tensor = constant(name);
  spend(tensor.elements());
  if (is_float(tensor.type)) throw Refusal{"\"" + name + "\" has floats, expected integers"};
  if (bits_of(tensor.type) > 32)
    throw Refusal{"codes of the type " + std::string(name_of(tensor.type))};
  const auto [least, most] = range_of(tensor.type);
  return {tensor.dims, integers_of(tensor), least, most};
}

void Rewriter::set_codes(const std::string& name, ConstantCodes codes, const std::string& origin) {
  constant_codes_[name] = std::move(codes);
  origins_[name] = origin;
}

const std::string& Rewriter::origin_of(const std::string& name) const {
  const auto found = origins_.find(name);
  return found == origins_.end() ? name : found->second;
}

std::string Rewriter::name_for(std::string origin) {
  constexpr std::string_view kSuffix = "_quantized";  // ONNX Runtime's
  if (origin.ends_with(kSuffix) && origin.size() > kSuffix.size())
    origin.resize(origin.size() - kSuffix.size());
  // A constant that only its quantizer reads is not needed any more.
  const auto found = readers_.find(origin);
  const bool is_replaced = initializers_.contains(origin) && found != readers_.end() &&
                           found->second == 1 && replaced_.insert(origin).second;
  if (is_replaced) return origin;
  return readers_.emplace(origin, 1).second ? origin : "";
}

void Rewriter::add_floats(const std::string& name,
                          const std::vector<int64_t>& dims,
                          const std::vector<float>& values) {
  spend(std::ssize(values));
  result_.model.graph.initializers.push_back(float_tensor(name, dims, values));
}

void Rewriter::add_weights(const std::string& output,
                           const std::string& origin,
                           const ConstantCodes& codes,
                           const QParams& params) {
  const DefaultRounding rounding;
  const size_t channels = params.scale.size();
  size_t inner = 1;
  if (channels > 1) {
    const auto axis = static_cast<size_t>(checked_axis(params.axis, std::ssize(codes.dims)));
    if (codes.dims[axis] != static_cast<int64_t>(channels))
      throw Refusal{"another number of scales than of channels"};
    for (size_t i = axis + 1; i < codes.dims.size(); ++i)
      inner *= static_cast<size_t>(codes.dims[i]);
  }
  std::vector<float> values, scales;
  values.reserve(codes.values.size());
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < codes.values.size(); ++i) {
    const size_t channel = channels == 1 ? 0 : i / inner % channels;
    const int64_t difference = codes.values[i] - params.zero_point[channel];
    low = std::min(low, difference);
    high = std::max(high, difference);
    // A product of integers below 2^24 and a float32 is rounded once.
    const double value = static_cast<double>(difference) * double{params.scale[channel]};
    values.push_back(static_cast<float>(value));
    scales.push_back(params.scale[channel]);
  }
  std::string name = name_for(origin);
  if (name.empty()) name = output;
  if (name != output) aliases_[output] = name;
  add_floats(name, codes.dims, values);
  const int bits = codes.bits();
  if (bits > 16) return;  // a bias
  const int64_t most = (int64_t{1} << (bits - 1)) - 1;
  WeightCodes weights{.type = {std::max(bits, 2), true, low >= -most}, .per_channel = channels > 1};
  if (bits > 8) {
    weights.problem = "codes of " + std::to_string(bits) + " bits: weights have at most 8";
  } else if (low < -most - 1 || high > most) {
    weights.problem = "zero points of weights: without them the codes reach from " +
                      std::to_string(low) + " to " + std::to_string(high) +
                      ", which are no codes of " + std::to_string(bits) + " bits";
  }
  result_.weights[name] = std::move(weights);
  result_.scales.push_back(float_tensor(name, codes.dims, scales));
}

std::string Rewriter::operand(const Node& node, size_t i, int axis) {
  const std::string& name = input(node, i);
  const std::string &scale = input(node, i + 1), &zero = input(node, i + 2);
  if (!is_constant(name)) return dequantize(name, value_params(scale, zero));
  QParams own = params(scale, zero);
  if (own.axis >= 0) own.axis = axis;
  const std::string output = node.outputs[0] + "/input" + std::to_string(i);
  add_weights(output, origin_of(name), codes(name), own);
  return real(output);
}

void Rewriter::fold_constants(const Node& node) {
  if (!(node.domain.empty() || node.domain == "ai.onnx") || node.outputs.size() != 1 ||
      node.outputs[0].empty())
    return;
  if (node.op_type == "Constant") {
    const Attribute* const value = node.find("value");
    if (value != nullptr && std::holds_alternative<StoredTensor>(value->value))
      constants_[node.outputs[0]] = &std::get<StoredTensor>(value->value);
    return;
  }
  if (!is_foldable(node.op_type) || node.inputs.empty()) return;
  std::vector<ConstantPtr> inputs;
  for (const std::string& name : node.inputs) {
    if (!name.empty() && !constants_.contains(name)) return;
    if (!name.empty()) spend(constants_.at(name)->elements());
    inputs.push_back(name.empty()
                         ? nullptr
                         : std::make_shared<const Constant>(to_constant(*constants_.at(name))));
  }
  const std::vector<ConstantPtr> outputs = fold(node, inputs, opset(), fold_budget_);
  if (outputs.size() != 1 || outputs[0] == nullptr) return;
  const Constant& made = *outputs[0];
  if (made.is_float()) {
    folded_.push_back(float_tensor(node.outputs[0], made.dims, made.floats()));
  } else {
    const StoredTensor* const first =
        inputs[0] == nullptr ? nullptr : constants_.at(node.inputs[0]);
    const ElementType type =
        node.op_type == "Cast" ? static_cast<ElementType>(node.get("to", int64_t{0}))
        : first != nullptr && !is_float(first->type) && node.op_type != "ConstantOfShape"
            ? first->type
            : ElementType::kInt64;
    folded_.push_back(integer_tensor(node.outputs[0], type, made.dims, made.integers()));
  }
  constants_[node.outputs[0]] = &folded_.back();
}

}  // namespace quantrain::onnx
