#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/rounding.hpp"
#include "layers/onnx/elements.hpp"
#include "quant/import/onnx/rewriter.hpp"

// QuantizeLinear and DequantizeLinear, and what exporters write between them: Clip for fewer bits,
// and Cast.
namespace quantrain::onnx {
namespace {

void check_blocks(const Node& n) {
  if (n.get("block_size", int64_t{0}) != 0) throw Refusal{"a scale for each block"};
}

/// The axis of several scales.
void set_axis(const Node& n, const std::vector<int64_t>& dims, QParams& params) {
  if (params.scale.size() == 1) return;
  params.axis = checked_axis(n.get("axis", int64_t{1}), std::ssize(dims));
}

/// The codes of a constant of floats, by (3).
ConstantCodes quantized(const std::vector<int64_t>& dims,
                        const std::vector<float>& values,
                        const QParams& params) {
  const DefaultRounding rounding;
  ConstantCodes codes{dims, {}, params.type.qmin(), params.type.qmax()};
  const size_t channels = params.scale.size();
  size_t inner = 1;
  if (channels > 1) {
    const auto axis = static_cast<size_t>(params.axis);
    if (dims[axis] != static_cast<int64_t>(channels))
      throw Refusal{"another number of scales than of channels"};
    for (size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = channels == 1 ? 0 : i / inner % channels;
    if (std::isnan(values[i])) throw Refusal{"of a constant that is not a number"};
    codes.values.push_back(quantrain::quantize(
        values[i], params.scale[c], params.zero_point[c], params.type.qmin(), params.type.qmax()));
  }
  return codes;
}

void quantize_linear(Rewriter& r, const Node& n) {
  r.begin(n, "QDQ");
  check_blocks(n);
  const std::string &x = input(n, 0), &zero = input(n, 2);
  const auto named = static_cast<ElementType>(n.get("output_dtype", int64_t{0}));
  const ElementType type = named == ElementType::kUndefined ? ElementType::kUint8 : named;
  if (r.is_constant(x)) {
    QParams params = r.params(input(n, 1), zero, type);
    if (bits_of(zero.empty() ? type : r.constant(zero).type) > 8)
      throw Refusal{"codes of more than 8 bits"};
    const StoredTensor& tensor = r.constant(x);
    set_axis(n, tensor.dims, params);
    for (const int32_t z : params.zero_point) {
      if (z < params.type.qmin() || z > params.type.qmax())
        throw Refusal{"a zero point that is no code"};
    }
    return r.set_codes(n.outputs[0], quantized(tensor.dims, r.floats(x), params), x);
  }
  if (r.params_of(x) != nullptr || r.is_code_input(x)) throw Refusal{"of codes"};
  r.quantize(r.real(x), n.outputs[0], r.value_params(input(n, 1), zero, type));
}

void dequantize_linear(Rewriter& r, const Node& n) {
  r.begin(n, "QDQ");
  check_blocks(n);
  const std::string& x = input(n, 0);
  if (!r.is_constant(x)) {
    // Without a zero point, the codes say their own type.
    const QParams* const own = r.params_of(x);
    QParams params = r.value_params(input(n, 1), input(n, 2), r.type_of_input(x));
    if (input(n, 2).empty() && own != nullptr) params.type = own->type;
    return r.alias(n.outputs[0], r.dequantize(x, params));
  }
  const ConstantCodes codes = r.codes(x);
  QParams params = r.params(input(n, 1), input(n, 2));
  set_axis(n, codes.dims, params);
  r.add_weights(n.outputs[0], r.origin_of(x), codes, params);
}

/// Codes from `least` to `most`: a type of fewer bits, a ReLU, or other bounds of the real value.
void fewer_codes(Rewriter& r, const Node& n, QParams params, int64_t least, int64_t most) {
  const std::string &x = input(n, 0), &y = n.outputs[0];
  const int32_t zero = params.zero_point[0];
  if (const std::optional<QType> type = find_type(least, most);
      type && zero >= least && zero <= most) {
    params.type = *type;
    return r.quantize(r.real(r.source_of(x)), y, params);
  }
  if (least > most) throw Refusal{"with bounds between which there is no code"};
  Node node;
  node.name = n.name.empty() ? y : n.name;
  node.inputs = {r.real(x)};
  node.outputs = {y + "/real"};
  if (least == zero && most == params.type.qmax()) {
    node.op_type = "Relu";
  } else {
    node.op_type = "Clip";
    for (const auto& [name, bound] :
         {std::pair(y + "/least", least), std::pair(y + "/most", most)}) {
      r.add_floats(name, {}, {params.scale[0] * static_cast<float>(bound - zero)});
      node.inputs.push_back(name);
    }
  }
  r.add(std::move(node));
  r.quantize(y + "/real", y, params);
}

/// Clip of codes: fewer codes. Of floats: as ever.
void clip(Rewriter& r, const Node& n) {
  const std::string& x = input(n, 0);
  if (n.outputs.size() != 1) throw Refusal{"expected to have one output"};
  const auto bounds = [&](int64_t least, int64_t most) {
    if (!input(n, 1).empty()) least = std::max(least, r.codes(input(n, 1)).values.at(0));
    if (!input(n, 2).empty()) most = std::min(most, r.codes(input(n, 2)).values.at(0));
    return std::pair(least, most);
  };
  const auto check_bound = [&](size_t i) {
    if (!input(n, i).empty() && r.codes(input(n, i)).values.size() != 1)
      throw Refusal{"a bound that is not one number"};
  };
  if (const QParams* const own = r.params_of(x)) {
    check_bound(1);
    check_bound(2);
    const QParams params = *own;
    const auto [least, most] = bounds(params.type.qmin(), params.type.qmax());
    return fewer_codes(r, n, params, least, most);
  }
  if (r.has_codes(x)) {
    check_bound(1);
    check_bound(2);
    ConstantCodes codes = r.codes(x);
    std::tie(codes.least, codes.most) = bounds(codes.least, codes.most);
    if (codes.least > codes.most) throw Refusal{"with bounds between which there is no code"};
    for (int64_t& q : codes.values) q = std::clamp(q, codes.least, codes.most);
    return r.set_codes(n.outputs[0], std::move(codes), r.origin_of(x));
  }
  r.copy_node(n);
}

/// Cast of codes to another type of integers.
void cast(Rewriter& r, const Node& n) {
  const std::string& x = input(n, 0);
  if (n.outputs.size() != 1) throw Refusal{"expected to have one output"};
  const bool is_computed = r.params_of(x) != nullptr;
  if (!is_computed && !r.has_codes(x)) return r.copy_node(n);
  const auto type = static_cast<ElementType>(n.get("to", int64_t{0}));
  if (is_float(type) || bits_of(type) < 4)
    throw Refusal{"of codes to " + std::string(name_of(type))};
  const auto [least, most] = range_of(type);
  if (is_computed) {
    const QParams params = *r.params_of(x);
    if (params.type.qmin() < least || params.type.qmax() > most)
      throw Refusal{"of codes to " + std::string(name_of(type)) + ", which does not have them"};
    r.alias(n.outputs[0], x);
    return r.same_codes(n.outputs[0], params, r.source_of(x));
  }
  ConstantCodes codes = r.codes(x);
  for (const int64_t q : codes.values) {
    if (q < least || q > most)
      throw Refusal{"of codes to " + std::string(name_of(type)) + ", which does not have them"};
  }
  r.set_codes(n.outputs[0], std::move(codes), r.origin_of(x));
}

/// Pad of codes: the value that fills is a code, too.
void pad(Rewriter& r, const Node& n) {
  const QParams* const own = r.params_of(input(n, 0));
  if (own == nullptr) return r.copy_node(n);
  if (n.outputs.size() != 1 || n.inputs.size() < 2) throw Refusal{"of codes"};
  const QParams params = *own;
  int64_t fill = 0;
  if (!input(n, 2).empty()) {
    const ConstantCodes codes = r.codes(input(n, 2));
    if (codes.values.size() != 1) throw Refusal{"with a fill that is not one number"};
    fill = codes.values[0];
  }
  const std::string name = n.outputs[0] + "/fill";
  r.add_floats(name, {}, {params.scale[0] * static_cast<float>(fill - params.zero_point[0])});
  Node copy = n;
  copy.inputs.resize(std::max<size_t>(copy.inputs.size(), 3));
  copy.inputs[2] = name;
  for (std::string& value : copy.inputs) value = r.real(value);
  r.add(std::move(copy));
  r.same_codes(n.outputs[0], params, n.outputs[0]);
}

Rewrite refused(const char* reason) {
  return [reason](Rewriter&, const Node&) { throw Refusal{reason}; };
}

}  // namespace

void add_qdq(RewriteTable& table) {
  for (const char* const domain : {"", "com.microsoft"}) {
    table[std::string(domain) + ".QuantizeLinear"] = quantize_linear;
    table[std::string(domain) + ".DequantizeLinear"] = dequantize_linear;
  }
  table[".Clip"] = clip;
  table[".Cast"] = cast;
  table[".Pad"] = pad;
  const Rewrite dynamic = refused("its ranges are chosen anew for each batch");
  table[".DynamicQuantizeLinear"] = dynamic;
  table["com.microsoft.DynamicQuantizeMatMul"] = dynamic;
  const Rewrite sums = refused("its sums have no scale of their own");
  table[".ConvInteger"] = sums;
  table[".MatMulInteger"] = sums;
  table["com.microsoft.MatMulInteger16"] = sums;
  table["com.microsoft.MatMulIntegerToFloat"] = sums;
}

}  // namespace quantrain::onnx
