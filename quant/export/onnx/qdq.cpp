#include "quant/export/onnx/qdq.hpp"

#include <algorithm>
#include <cmath>

#include "quant/export/onnx/ends.hpp"

namespace quantrain::onnx_export {
namespace {

using onnx::ElementType;
using onnx::GraphBuilder;

/// Results that lie so near the middle of two codes, relative to their size, may get either code:
/// runtimes compute in float32.
constexpr double kNear = 0x1p-22;
/// An operation stays exact if more than this share of its possible results lies so near. Where
/// ties have no reason in the scales, 2 kNear 255 = 1.2e-4 of the results do.
constexpr double kMostTies = 3e-4;

/// Counts results by whether they are near the middle of two codes.
class Ties {
 public:
  explicit Ties(const StoredOutput& y) : y_(y) {}
  /// steps: a result in steps of the output's scale.
  void add(double steps) {
    ++results_;
    const double code = steps + y_.zero_point;
    if (code < y_.lo || code > y_.hi) return;
    const double from_middle = std::abs(steps - std::floor(steps) - 0.5);
    if (from_middle <= kNear * std::max(1.0, std::abs(steps))) ++near_;
  }
  bool are_frequent() const {
    return static_cast<double>(near_) > kMostTies * static_cast<double>(results_);
  }

 private:
  StoredOutput y_;
  int64_t results_ = 0;
  int64_t near_ = 0;
};

/// Adds f(a - zero_a, b - zero_b) of all pairs of codes.
template <class F>
bool ties_are_frequent(const QParams& a, const QParams& b, const StoredOutput& y, const F& f) {
  Ties ties(y);
  for (const int32_t p : integer::stored_codes(a)) {
    for (const int32_t q : integer::stored_codes(b))
      ties.add(f(p - stored_zero_point(a), q - stored_zero_point(b)));
  }
  return ties.are_frequent();
}

double scale_in(const integer::Program& program, int id) {
  return program.value(id).params->scale[0];
}

float scale_of(const Export& out, int id) { return out.program.value(id).params->scale[0]; }

std::string scale(Export& out, int id) {
  return out.graph.scalar<float>(scale_of(out, id), "scale");
}
std::string zero(Export& out, int id) {
  const QParams& params = *out.program.value(id).params;
  return out.graph.scalar(static_cast<uint8_t>(stored_zero_point(params)), "zero");
}

std::string dequantized(Export& out, int id, const std::string& codes) {
  return out.graph.node("DequantizeLinear", {codes, scale(out, id), zero(out, id)});
}
std::string dequantized(Export& out, int id, const Form& form) {
  return dequantized(out, id, out.values.get(id, form));
}

/// The codes of a step's result. The range of uint8 does the clamp of a ReLU whose zero point is 0.
std::string quantized(Export& out, int id, const std::string& real, const StoredOutput& y) {
  const std::string codes = out.graph.node("QuantizeLinear", {real, scale(out, id), zero(out, id)});
  return clamped(out.graph, codes, y.lo, y.hi);
}

/// Two int4 in each byte, the first in the low half.
std::vector<uint8_t> packed(const std::vector<int8_t>& values) {
  std::vector<uint8_t> bytes((values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i)
    bytes[i / 2] |= static_cast<uint8_t>((values[i] & 15) << (i % 2 * 4));
  return bytes;
}

/// The operands of Conv and Gemm besides the input: weights and bias, each dequantized.
std::vector<std::string> operands(Export& out,
                                  const integer::QuantizedProduct& product,
                                  const kernels::Conv2dShape& s,
                                  int x,
                                  const std::vector<float>& scales,
                                  WeightOrder order,
                                  const std::vector<int64_t>& dims) {
  GraphBuilder& graph = out.graph;
  const std::vector<int8_t> values = ordered_weights(product.weight, s, order);
  const bool is_int4 = out.int4_weights && product.weight.bits() <= 4;
  const ElementType type = is_int4 ? ElementType::kInt4 : ElementType::kInt8;
  std::vector<uint8_t> bytes(values.begin(), values.end());
  if (is_int4) bytes = packed(values);
  const std::string weight = graph.constant(type, dims, std::move(bytes), "weight");
  out.weights.push_back({out.position, weight, order});
  const auto zeros = static_cast<size_t>(is_int4 ? (s.o + 1) / 2 : s.o);
  const std::string zero = graph.constant(type, {s.o}, std::vector<uint8_t>(zeros), "zero");
  const std::vector<onnx::Attribute> axis{{"axis", int64_t{0}}};
  std::vector<std::string> result{graph.node(
      "DequantizeLinear", {weight, graph.constant<float>({s.o}, scales, "scale"), zero}, axis)};
  if (product.bias.empty()) return result;
  std::vector<float> bias_scales;
  for (const float scale : scales)
    bias_scales.push_back(static_cast<float>(sum_scale(scale_of(out, x), scale)));
  const std::vector<int32_t> bias(product.bias.begin(), product.bias.end());
  result.push_back(
      graph.node("DequantizeLinear",
                 {graph.constant<int32_t>({s.o}, bias, "bias"),
                  graph.constant<float>({s.o}, bias_scales, "scale"),
                  graph.constant<int32_t>({s.o}, std::vector<int32_t>(bias.size()), "zero")},
                 axis));
  return result;
}

struct Qdq {
  Export& out;
  const integer::Step& step;
  bool gives_reals;
  const std::vector<int>& x = step.inputs;
  int y = step.output;

  bool operator()(const integer::QuantizedConv2d& op) const {
    const kernels::Conv2dShape& s = op.shape;
    const auto scales = weight_scales(out.program, step);
    if (!op.product.output || !scales) return false;
    std::vector<std::string> inputs = operands(out,
                                               op.product,
                                               s,
                                               x[0],
                                               *scales,
                                               WeightOrder::kConvolution,
                                               {s.o, s.group_c(), s.kh, s.kw});
    inputs.insert(inputs.begin(), dequantized(out, x[0], input_image(s)));
    const std::string real = out.graph.node("Conv", inputs, convolution_attributes(s));
    out.values.set(y, output_image(s), quantized(out, y, real, op.product.output->y));
    return true;
  }

  // Gemm takes matrices, so rows become samples.
  bool operator()(const integer::QuantizedLinear& op) const {
    const auto scales = weight_scales(out.program, step);
    if ((!op.product.output && !gives_reals) || !scales) return false;
    const kernels::Conv2dShape s{.c = op.inputs, .o = op.outputs};
    std::string codes = out.values.get(x[0], row_form(op.rows, op.inputs));
    if (op.rows > 1) codes = add_reshape(out.graph, codes, {op.inputs}, -1);
    std::vector<std::string> inputs = operands(
        out, op.product, s, x[0], *scales, WeightOrder::kTransposed, {op.outputs, op.inputs});
    inputs.insert(inputs.begin(), dequantized(out, x[0], codes));
    std::string result = out.graph.node("Gemm", inputs, {{"transB", int64_t{1}}});
    if (op.product.output) result = quantized(out, y, result, op.product.output->y);
    if (op.rows > 1) result = add_reshape(out.graph, result, {op.rows, op.outputs}, -1);
    out.values.set(y, row_form(op.rows, op.outputs), result);
    if (!op.product.output) out.reals.insert(y);
    return true;
  }

  bool operator()(const integer::QuantizedAdd& op) const {
    if (!is_pair_sum(out.program, step)) return false;
    const Form form = out.values.common_form(x, form_of(out.program.value(y).shape));
    const std::string sum =
        out.graph.node("Add", {dequantized(out, x[0], form), dequantized(out, x[1], form)});
    out.values.set(y, form, quantized(out, y, sum, op.y));
    return true;
  }

  bool operator()(const integer::QuantizedMul& op) const {
    if (!is_near_product(out.program, step)) return false;
    const auto [form, factors] = mul_forms(out, op, x[0], x[1]);
    const std::string product =
        out.graph.node("Mul", {dequantized(out, x[0], form), dequantized(out, x[1], factors)});
    out.values.set(y, form, quantized(out, y, product, op.y));
    return true;
  }

  bool operator()(const integer::QuantizedAvgPool2d& op) const {
    const kernels::Conv2dShape& s = op.shape;
    const std::optional<int64_t> divisor = pool_divisor(out.program, step);
    if (!divisor) return false;
    std::vector<onnx::Attribute> attributes = window_attributes(s);
    attributes.push_back({"count_include_pad", int64_t{*divisor > 0}});
    const std::string image = dequantized(out, x[0], input_image(s));
    const bool is_global = s.kh == s.h && s.kw == s.w && !integer::has_padding(s);
    const std::string mean = is_global
                                 ? out.graph.node("GlobalAveragePool", {image})
                                 : out.graph.node("AveragePool", {image}, std::move(attributes));
    out.values.set(y, output_image(s), quantized(out, y, mean, op.y));
    return true;
  }

  // These are tables and moves of codes, or no runtime has a kernel of integers that is as near.
  bool operator()(const integer::Gather&) const { return false; }
  bool operator()(const integer::QuantizedConcat&) const { return false; }
  bool operator()(const integer::QuantizedLookup&) const { return false; }
  bool operator()(const integer::QuantizedMaxPool2d&) const { return false; }
  bool operator()(const integer::QuantizedSoftmax&) const { return false; }
  bool operator()(const integer::View&) const { return false; }
};

}  // namespace

std::optional<std::vector<float>> weight_scales(const integer::Program& program,
                                                const integer::Step& step) {
  const integer::QuantizedProduct& product = *integer::product(step.operation);
  const integer::Value& y = program.value(step.output);
  const double scale_x = program.value(step.inputs[0]).params->scale[0];
  const std::vector<float>& origin = step.origin.weight_scale;
  std::vector<float> scales;
  const int64_t channels = integer::weight_channels(step.operation);
  for (int64_t o = 0; o < channels; ++o) {
    const double sum =
        product.output
            ? std::ldexp(product.output->m0[o], -product.output->shift[o]) * y.params->scale[0]
            : y.scale[static_cast<size_t>(o) % y.scale.size()];
    auto scale = static_cast<float>(sum / scale_x);
    if (!origin.empty()) {
      const float own = origin[static_cast<size_t>(o) % origin.size()];
      if (std::abs(own - scale) <= 1e-6f * own) scale = own;
    }
    if (!std::isnormal(scale) || scale < 0.0f) return std::nullopt;
    if (!std::isnormal(static_cast<float>(scale_x * scale))) return std::nullopt;
    scales.push_back(scale);
  }
  return scales;
}

std::optional<int64_t> pool_divisor(const integer::Program& program, const integer::Step& step) {
  const auto& op = std::get<integer::QuantizedAvgPool2d>(step.operation);
  const QParams& x = *program.value(step.inputs[0]).params;
  const QParams& y = *program.value(step.output).params;
  const int64_t all = op.shape.kh * op.shape.kw;
  if (all * std::ssize(op.means) > kMostSummed) return std::nullopt;
  const auto divides_by = [&](const auto& divisor) {
    return std::all_of(op.means.begin(), op.means.end(), [&](const auto& mean) {
      return mean.multiplier == mean_multiplier(x.scale[0], divisor(mean.count), y.scale[0]);
    });
  };
  const bool by_count = divides_by([](int64_t count) { return count; });
  if (op.zero_x != stored_zero_point(x) || !(by_count || divides_by([&](int64_t) { return all; })))
    return std::nullopt;
  const double steps = scale_in(program, step.inputs[0]) / scale_in(program, step.output);
  for (const kernels::MeanMultiplier& mean : op.means) {
    Ties ties(op.y);
    const int64_t lo = mean.count * (x.type.qmin() - x.zero_point[0]);
    const int64_t hi = mean.count * (x.type.qmax() - x.zero_point[0]);
    for (int64_t sum = lo; sum <= hi; ++sum)
      ties.add(static_cast<double>(sum) * steps / static_cast<double>(by_count ? mean.count : all));
    if (ties.are_frequent()) return std::nullopt;
  }
  return by_count ? 0 : all;
}

bool is_pair_sum(const integer::Program& program, const integer::Step& step) {
  const auto& op = std::get<integer::QuantizedAdd>(step.operation);
  if (step.inputs.size() != 2) return false;
  const double y = scale_in(program, step.output);
  const double a = scale_in(program, step.inputs[0]) / y;
  const double b = scale_in(program, step.inputs[1]) / y;
  return !ties_are_frequent(*program.value(step.inputs[0]).params,
                            *program.value(step.inputs[1]).params,
                            op.y,
                            [&](int32_t p, int32_t q) { return a * p + b * q; });
}

bool is_near_product(const integer::Program& program, const integer::Step& step) {
  const auto& op = std::get<integer::QuantizedMul>(step.operation);
  const double m = scale_in(program, step.inputs[0]) * scale_in(program, step.inputs[1]) /
                   scale_in(program, step.output);
  return !ties_are_frequent(*program.value(step.inputs[0]).params,
                            *program.value(step.inputs[1]).params,
                            op.y,
                            [&](int32_t p, int32_t q) { return m * p * q; });
}

bool add_qdq(Export& out, const integer::Step& step, bool gives_reals) {
  return std::visit(Qdq{out, step, gives_reals}, step.operation);
}

}  // namespace quantrain::onnx_export
