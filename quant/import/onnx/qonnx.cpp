#include <algorithm>
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/rounding.hpp"
#include "quant/import/onnx/rewriter.hpp"

// The operators of QONNX, which quantize and dequantize at once: Quant, BipolarQuant, Trunc.
namespace quantrain::onnx {
namespace {

/// The axis along which a tensor of these dims has a value for each index, where all other extents
/// are 1; -1 if there is one value.
int axis_of(std::vector<int64_t> dims, size_t rank) {
  if (dims.size() > rank) throw Refusal{"a scale of more axes than its value"};
  dims.insert(dims.begin(), rank - dims.size(), 1);
  int axis = -1;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    if (axis >= 0) throw Refusal{"a scale that varies along several axes"};
    axis = static_cast<int>(i);
  }
  return axis;
}

int32_t whole(float value, const char* what) {
  if (!(std::abs(value) <= 65536.0f) || value != std::trunc(value))
    throw Refusal{std::string(what) + " that is no integer"};
  return static_cast<int32_t>(value);
}

void quant(Rewriter& r, const Node& n) {
  r.begin(n, "QONNX");
  const std::string &x = input(n, 0), &scale = input(n, 1);
  const std::string mode = n.get("rounding_mode", "ROUND");
  if (mode != "ROUND" && mode != "HALF_EVEN") throw Refusal{"rounding_mode " + mode};
  const int32_t bits = whole(r.number(input(n, 3)), "a number of bits");
  const QType type{bits, n.get("signed", int64_t{1}) != 0, n.get("narrow", int64_t{0}) != 0};
  if (type.is_sign()) throw Refusal{"signed codes of 1 bit"};
  if (bits < kLeastBits || bits > kMostBits) {
    throw Refusal{std::to_string(bits) + " bits: " + std::to_string(kLeastBits) + " to " +
                  std::to_string(kMostBits) + " are possible"};
  }
  if (type.narrow && !type.is_signed) throw Refusal{"narrow unsigned codes"};
  QParams params = r.params(scale, {});
  params.type = type;
  const std::vector<float> zero_points = r.floats(input(n, 2));
  if (zero_points.size() != 1 && zero_points.size() != params.scale.size())
    throw Refusal{"another number of zero points than of scales"};
  for (size_t c = 0; c < params.scale.size(); ++c) {
    const float z = zero_points[zero_points.size() == 1 ? 0 : c];
    params.zero_point[c] = whole(z, "a zero point");
    if (params.zero_point[c] < type.qmin() || params.zero_point[c] > type.qmax())
      throw Refusal{"a zero point that is no code"};
  }
  if (!r.is_constant(x)) {
    if (params.scale.size() != 1)
      throw Refusal{"a scale for each channel of a computed value: only weights may have that"};
    params.axis = -1;
    return r.add_quantizer(r.real(x), n.outputs[0], params);
  }
  const DefaultRounding rounding;
  const StoredTensor& tensor = r.constant(x);
  params.axis = axis_of(r.constant(scale).dims, tensor.dims.size());
  const size_t channels = params.scale.size();
  size_t inner = 1;
  if (channels > 1) {
    const auto axis = static_cast<size_t>(params.axis);
    if (tensor.dims[axis] != static_cast<int64_t>(channels))
      throw Refusal{"another number of scales than of channels"};
    for (size_t i = axis + 1; i < tensor.dims.size(); ++i)
      inner *= static_cast<size_t>(tensor.dims[i]);
  }
  ConstantCodes codes{tensor.dims, {}, type.qmin(), type.qmax()};
  const std::vector<float> values = r.floats(x);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = channels == 1 ? 0 : i / inner % channels;
    if (std::isnan(values[i])) throw Refusal{"of a constant that is not a number"};
    codes.values.push_back(quantrain::quantize(
        values[i], params.scale[c], params.zero_point[c], type.qmin(), type.qmax()));
  }
  r.add_weights(n.outputs[0], x, codes, params);
}

/// scale where x >= 0, else -scale.
void bipolar_quant(Rewriter& r, const Node& n) {
  r.begin(n, "QONNX");
  if (!r.is_constant(input(n, 0))) {
    r.alias(n.outputs[0], input(n, 0));  // what follows is still looked at
    throw Refusal{"a computed value of 1 bit: values have at least 2"};
  }
  const float scale = r.number(input(n, 1));
  if (!(std::isnormal(scale) && scale > 0.0f)) throw Refusal{"a scale that is not positive"};
  // -1 and 1 are codes of 2 bits.
  ConstantCodes codes{r.constant(input(n, 0)).dims, {}, -1, 1};
  for (const float value : r.floats(input(n, 0))) codes.values.push_back(value >= 0.0f ? 1 : -1);
  r.add_weights(n.outputs[0], input(n, 0), codes, {{2, true, true}, -1, {scale}, {0}});
}

void trunc(Rewriter& r, const Node& n) {
  r.begin(n, "QONNX");
  r.alias(n.outputs[0], input(n, 0));
  throw Refusal{"it rounds down, and means round to the nearest code here"};
}

}  // namespace

void add_qonnx(RewriteTable& table) {
  for (const char* const domain :
       {"onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general"}) {
    table[std::string(domain) + ".Quant"] = quant;
    table[std::string(domain) + ".IntQuant"] = quant;
    table[std::string(domain) + ".BipolarQuant"] = bipolar_quant;
    table[std::string(domain) + ".Trunc"] = trunc;
  }
}

}  // namespace quantrain::onnx
