#include "quant/import/onnx/rewriter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "layers/onnx/elements.hpp"

namespace quantrain::onnx {
namespace {

const std::string kAbsent;

bool is_own_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

/// Operators that move or select codes and compute none.
const std::set<std::string>& moves() {
  static const std::set<std::string> all{"MaxPool",
                                         "GlobalMaxPool",
                                         "Reshape",
                                         "Flatten",
                                         "Transpose",
                                         "Squeeze",
                                         "Unsqueeze",
                                         "Slice",
                                         "Split",
                                         "Identity",
                                         "Dropout",
                                         "Gather",
                                         "DepthToSpace",
                                         "SpaceToDepth",
                                         "Resize",
                                         "Upsample",
                                         "Concat"};
  return all;
}

}  // namespace

const std::string& input(const Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kAbsent;
}

std::optional<QType> find_type(int64_t least, int64_t most) {
  for (int bits = kLeastBits; bits <= kMostSimulatedBits; ++bits) {
    for (const QType type :
         {QType{bits, false, false}, QType{bits, true, false}, QType{bits, true, true}}) {
      if (type.qmin() == least && type.qmax() == most && !type.is_sign()) return type;
    }
  }
  return std::nullopt;
}

bool same_scale(const QParams& a, const QParams& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point && a.type.is_signed == b.type.is_signed;
}

std::string text_of(const QParams& params) {
  TextStream text;
  text.precision(9);
  text << params;
  return text.str();
}

Rewriter::Rewriter(const Model& model)
    : model_(model),
      fold_budget_(int64_t{1} << 20, model.file_bytes),
      budget_((int64_t{1} << 20) + 8 * model.file_bytes) {
  for (const StoredTensor& tensor : model.graph.initializers) {
    constants_[tensor.name] = &tensor;
    initializers_.insert(tensor.name);
  }
  for (const ValueInfo& info : model.graph.inputs) {
    const bool is_code = bits_of(info.type) > 0 && !is_float(info.type) &&
                         info.type != ElementType::kBool && bits_of(info.type) <= 8;
    readers_.emplace(info.name, 0);
    if (is_code && !constants_.contains(info.name)) code_inputs_[info.name] = info.type;
  }
  for (const StoredTensor& tensor : model.graph.initializers) readers_.emplace(tensor.name, 0);
  for (const Node& node : model.graph.nodes) {
    for (const std::string& output : node.outputs) readers_.emplace(output, 0);
    for (const std::string& input : node.inputs) ++readers_[input];
  }
  for (const ValueInfo& output : model.graph.outputs) ++readers_[output.name];
}

const std::string& Rewriter::real(const std::string& name) const {
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? name : found->second;
}

bool Rewriter::is_constant(const std::string& name) const {
  return constants_.contains(name) || constant_codes_.contains(name);
}

QParams Rewriter::params(const std::string& scale, const std::string& zero, ElementType type) {
  QParams params;
  params.scale = floats(scale);
  if (params.scale.empty()) throw Refusal{"\"" + scale + "\" has no scale"};
  for (const float s : params.scale) {
    if (!(std::isnormal(s) && s > 0.0f))
      throw Refusal{"\"" + scale + "\" has a scale that is not positive"};
  }
  if (zero.empty()) {
    params.zero_point.assign(params.scale.size(), 0);
  } else {
    const StoredTensor& tensor = constant(zero);
    type = tensor.type;
    if (is_float(type)) throw Refusal{"codes of the type " + std::string(name_of(type))};
    spend(tensor.elements());
    for (const int64_t z : integers_of(tensor)) {
      if (z < std::numeric_limits<int32_t>::min() || z > std::numeric_limits<int32_t>::max())
        throw Refusal{"a zero point that is no code"};
      params.zero_point.push_back(static_cast<int32_t>(z));
    }
    if (params.zero_point.size() == 1 && params.scale.size() > 1)
      params.zero_point.assign(params.scale.size(), params.zero_point[0]);
    if (params.zero_point.size() != params.scale.size())
      throw Refusal{"another number of zero points than of scales"};
  }
  if (is_float(type) || bits_of(type) == 0 || type == ElementType::kBool)
    throw Refusal{"codes of the type " + std::string(name_of(type))};
  const auto [least, most] = range_of(type);
  if (bits_of(type) <= 16) {
    const std::optional<QType> found = find_type(least, most);
    if (!found) throw Refusal{"codes of the type " + std::string(name_of(type))};
    params.type = *found;
  }
  params.axis = params.scale.size() > 1 ? 0 : -1;
  return params;
}

QParams Rewriter::value_params(const std::string& scale,
                               const std::string& zero,
                               ElementType type) {
  QParams all = params(scale, zero, type);
  if (all.scale.size() != 1)
    throw Refusal{"a scale for each channel of a computed value: only weights may have that"};
  const ElementType of_codes = zero.empty() ? type : constant(zero).type;
  if (bits_of(of_codes) > 8)
    throw Refusal{"codes of the type " + std::string(name_of(of_codes)) +
                  ": values have at most 8 bits"};
  return all;
}

void Rewriter::add_quantizer(const std::string& source,
                             const std::string& output,
                             const QParams& params) {
  if (params.zero_point[0] < params.type.qmin() || params.zero_point[0] > params.type.qmax())
    throw Refusal{"a zero point that is no code"};
  Node node;
  node.name = output;
  node.op_type = kQuantizer;
  node.domain = kOwnDomain;
  node.inputs = {params.zero_point[0] == params.type.qmin() ? rectified(source) : source};
  node.outputs = {output};
  node.attributes = {{kIndex, static_cast<int64_t>(result_.quantizers.size())}};
  result_.quantizers.push_back(params);
  add(std::move(node));
}

// Quantizers drop a ReLU before codes of which the lowest is 0. Without it, the network would
// compute something else in floats.
const std::string& Rewriter::rectified(const std::string& source) {
  if (!sums_.contains(source)) return source;
  const auto [at, is_new] = rectified_.emplace(source, source + "/relu");
  if (is_new) {
    Node node;
    node.name = at->second;
    node.op_type = "Relu";
    node.inputs = {source};
    node.outputs = {at->second};
    add(std::move(node));
  }
  return at->second;
}

void Rewriter::add(Node node) {
  static const std::set<std::string_view> kSums{
      "Conv", "Gemm", "MatMul", "Add", "Sum", "BatchNormalization"};
  if (is_own_domain(node.domain) && kSums.contains(node.op_type) && !node.outputs.empty())
    sums_.insert(node.outputs[0]);
  result_.model.graph.nodes.push_back(std::move(node));
}

void Rewriter::quantize(const std::string& source,
                        const std::string& output,
                        const QParams& params) {
  add_quantizer(source, output, params);
  coded_[output] = {source, params};
}

void Rewriter::same_codes(const std::string& output,
                          const QParams& params,
                          const std::string& source) {
  coded_[output] = {source, params};
}

ElementType Rewriter::type_of_input(const std::string& name) const {
  const auto found = code_inputs_.find(name);
  return found == code_inputs_.end() ? ElementType::kUint8 : found->second;
}

const QParams* Rewriter::params_of(const std::string& name) const {
  const auto found = coded_.find(name);
  return found == coded_.end() ? nullptr : &found->second.params;
}

const std::string& Rewriter::source_of(const std::string& name) const {
  return coded_.at(name).source;
}

const std::string& Rewriter::dequantize(const std::string& name, const QParams& params) {
  if (code_inputs_.contains(name) && !aliases_.contains(name)) {
    const std::string quantized = name + "/codes";
    quantize(name, quantized, params);
    coded_[name] = coded_[quantized];
    aliases_[name] = quantized;
  }
  const QParams* const own = params_of(name);
  if (own == nullptr)
    throw Refusal{"reads \"" + name + "\" as codes, but nothing says what these codes mean"};
  if (!same_scale(*own, params)) {
    throw Refusal{"reads \"" + name + "\" as codes with " + text_of(params) + ", but they have " +
                  text_of(*own)};
  }
  return real(name);
}

void Rewriter::alias(const std::string& name, const std::string& other) {
  aliases_[name] = real(other);
}

void Rewriter::begin(const Node& node, const char* dialect) {
  // Files of QOperator have QuantizeLinear and DequantizeLinear at their ends.
  if (result_.dialect.empty() || result_.dialect == "QDQ") result_.dialect = dialect;
  if (node.outputs.size() != 1 || node.outputs[0].empty())
    throw Refusal{"expected to have one output"};
}

void Rewriter::copy_node(const Node& node) {
  if (node.domain == kOwnDomain) throw Refusal{"of a domain that no file may have"};
  Node copy = node;
  const QParams* params = nullptr;
  bool is_mixed = false;
  for (size_t i = 0; i < copy.inputs.size(); ++i) {
    const std::string& name = node.inputs[i];
    if (has_codes(name)) throw Refusal{"of constant codes"};
    const QParams* const own = params_of(name);
    if (own != nullptr && (i == 0 || node.op_type == "Concat")) {
      is_mixed = is_mixed || (params != nullptr && !same_scale(*params, *own));
      params = own;
    } else if (own != nullptr || code_inputs_.contains(name)) {
      throw Refusal{"of codes"};
    } else {
      is_mixed = is_mixed || (node.op_type == "Concat" && params != nullptr);
    }
    copy.inputs[i] = real(name);
  }
  const bool is_shape = node.op_type == "Shape" || node.op_type == "Size";
  if (params != nullptr && !is_shape) {
    if (!node.domain.empty() || !moves().contains(node.op_type)) throw Refusal{"of codes"};
    if (is_mixed) throw Refusal{"of codes with different parameters"};
    const QParams same = *params;
    for (const std::string& output : node.outputs) {
      if (!output.empty()) same_codes(output, same, output);
    }
  }
  add(std::move(copy));
}

void Rewriter::rewrite_node(const Node& node) {
  try {
    fold_constants(node);
  } catch (const Refusal&) {
    // It stays a node, and the import of floats says what is wrong if the network needs it.
  }
  const auto found =
      rewrites().find((is_own_domain(node.domain) ? "" : node.domain) + "." + node.op_type);
  if (found != rewrites().end()) return found->second(*this, node);
  copy_node(node);
}

void Rewriter::refuse(const Node& node, const std::string& reason) {
  refused_.add(node, reason);
  for (const std::string& output : node.outputs) {
    if (!aliases_.contains(output)) lost_.insert(output);
  }
}

void Rewriter::finish() {
  Graph& graph = result_.model.graph;
  for (ValueInfo& output : graph.outputs) output.name = real(output.name);
  std::set<std::string> last;  // the later of two constants of a name is ours
  std::vector<StoredTensor> kept;
  for (size_t i = graph.initializers.size(); i-- > 0;) {
    StoredTensor& tensor = graph.initializers[i];
    if (replaced_.contains(tensor.name) && !last.insert(tensor.name).second) continue;
    kept.push_back(std::move(tensor));
  }
  graph.initializers.assign(std::make_move_iterator(kept.rbegin()),
                            std::make_move_iterator(kept.rend()));
}

FloatGraph Rewriter::run() {
  result_.model.path = model_.path;
  result_.model.ir_version = model_.ir_version;
  result_.model.producer = model_.producer;
  result_.model.operator_sets = model_.operator_sets;
  result_.model.file_bytes = model_.file_bytes;
  Graph& graph = result_.model.graph;
  graph.name = model_.graph.name;
  graph.initializers = model_.graph.initializers;
  graph.inputs = model_.graph.inputs;
  graph.outputs = model_.graph.outputs;
  std::set<std::string> needed;
  for (const ValueInfo& output : graph.outputs) needed.insert(output.name);
  const std::vector<Node>& nodes = model_.graph.nodes;
  std::vector<bool> is_needed(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    for (const std::string& output : nodes[i].outputs)
      is_needed[i] = is_needed[i] || needed.contains(output);
    if (is_needed[i]) needed.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_needed[i]) continue;
    const auto& inputs = nodes[i].inputs;
    if (std::any_of(inputs.begin(), inputs.end(), [&](const std::string& name) {
          return lost_.contains(name);
        })) {
      lost_.insert(nodes[i].outputs.begin(), nodes[i].outputs.end());
      continue;
    }
    try {
      rewrite_node(nodes[i]);
    } catch (const Refusal& refusal) {
      refuse(nodes[i], refusal.reason);
    }
  }
  if (!refused_.empty()) {
    const auto& metadata = model_.metadata;
    const bool is_own = std::any_of(metadata.begin(), metadata.end(), [](const auto& entry) {
      return entry.first.starts_with("quantrain.");
    });
    throw DataError("onnx",
                    model_.path,
                    ": is quantized in a way that is not read:",
                    refused_.list(),
                    is_own ? "\nThis library exported it: load_exported_onnx() makes its integer "
                             "program again"
                           : "");
  }
  finish();
  return std::move(result_);
}

const RewriteTable& rewrites() {
  static const RewriteTable table = [] {
    RewriteTable all;
    add_qdq(all);
    add_qoperator(all);
    add_qonnx(all);
    return all;
  }();
  return table;
}

FloatGraph rewrite(const Model& model) { return Rewriter(model).run(); }

bool is_quantized(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const std::string domain = is_own_domain(node.domain) ? "" : node.domain;
    const bool is_shared =
        node.op_type == "Clip" || node.op_type == "Cast" || node.op_type == "Pad";
    return !is_shared && rewrites().contains(domain + "." + node.op_type);
  });
}

}  // namespace quantrain::onnx
