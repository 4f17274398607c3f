#include <algorithm>

#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/fixed_point.hpp"
#include "quant/export/onnx/forms.hpp"

// Additions, multiplications and softmax in integer operators.
namespace quantrain::onnx_export {
namespace {

using onnx::ElementType;

/// x - zero, as int64.
std::string difference(onnx::GraphBuilder& graph, const std::string& x, int32_t zero) {
  const std::string wide = cast(graph, x, ElementType::kInt64);
  return zero == 0 ? wide : graph.node("Sub", {wide, graph.scalar<int64_t>(zero)});
}

}  // namespace

// docs/quantization.md (11)
void exact_add(Export& out, const integer::QuantizedAdd& op, const std::vector<int>& x, int y) {
  const Form form = out.values.common_form(x, form_of(out.program.value(y).shape));
  std::string sum;
  Shift shift{.dims = {}, .shift = {op.shift}, .bound = 0, .offset = 0, .y = op.y};
  for (size_t i = 0; i < x.size(); ++i) {
    const integer::QuantizedAdd::Operand& operand = op.operands[i];
    const std::string wide = cast(out.graph, out.values.get(x[i], form), ElementType::kInt64);
    const std::string term =
        out.graph.node("Mul", {wide, out.graph.scalar<int64_t>(operand.m, "multiplier")});
    sum = i == 0 ? term : out.graph.node("Add", {sum, term});
    shift.offset -= int64_t{operand.zero_x} * operand.m;
    shift.bound += 255 * int64_t{operand.m};
  }
  out.values.set(y, form, rounding_shift(out.graph, sum, std::move(shift)));
}

std::pair<Form, Form> mul_forms(const Export& out, const integer::QuantizedMul& op, int a, int b) {
  const Form& form = out.values.first_form(a);
  const bool is_image =
      form.channels_first && form.dims[0] == op.channels && form.pixels() == op.rows;
  if (is_image) {
    Form factors{.dims = std::vector<int64_t>(form.dims.size(), 1), .channels_first = true};
    return {form, factors.with_channels(op.channels)};
  }
  if (op.rows > 1) return {{.dims = {op.rows, op.channels}}, {.dims = {1, op.channels}}};
  const Form both = out.values.common_form({a, b}, {.dims = {op.channels}});
  return {both, both};
}

// docs/quantization.md (25)
void exact_mul(Export& out, const integer::QuantizedMul& op, int a, int b, int y) {
  const auto [form, factors] = mul_forms(out, op, a, b);
  const std::string x = difference(out.graph, out.values.get(a, form), op.zero_a);
  const std::string w = difference(out.graph, out.values.get(b, factors), op.zero_b);
  const std::string codes = requantize(out.graph,
                                       out.graph.node("Mul", {x, w}),
                                       {.dims = {},
                                        .m0 = {op.multiplier.m0},
                                        .shift = {op.multiplier.shift},
                                        .bound = 255 * 255,
                                        .y = op.y});
  out.values.set(y, form, codes);
}

// docs/quantization.md (26)
void exact_softmax(Export& out, const integer::QuantizedSoftmax& op, int x, int y) {
  onnx::GraphBuilder& graph = out.graph;
  const Form form{.dims = {op.rows, op.classes}};
  const std::vector<int64_t> last{-1};
  const std::string codes = cast(graph, out.values.get(x, form), ElementType::kInt32);
  // The axes are an input: of a sum from operator set 13 on, of a maximum from 18 on.
  const auto reduced = [&](const char* op_type, const std::string& values, int64_t since) {
    if (out.opset < since) return graph.node(op_type, {values}, {{"axes", last}});
    const std::string axes = graph.constant<int64_t>({1}, last, "axes");
    return graph.node(op_type, {values, axes});
  };
  const std::string most = reduced("ReduceMax", codes, 18);
  const std::vector<int64_t> powers(op.powers.begin(), op.powers.end());
  const std::string power =
      graph.node("Gather",
                 {graph.constant<int64_t>({std::ssize(powers)}, powers, "powers"),
                  graph.node("Sub", {most, codes})});
  const std::string sum = reduced("ReduceSum", power, 13);
  const std::string scaled =
      graph.node("Mul", {power, graph.scalar<int64_t>(op.multiplier.m0, "multiplier")});
  const std::string share = graph.node("Div", {scaled, sum});
  out.values.set(y,
                 form,
                 rounding_shift(graph,
                                share,
                                {.dims = {},
                                 .shift = {op.multiplier.shift},
                                 .bound = op.multiplier.m0,
                                 .offset = 0,
                                 .y = op.y}));
}

}  // namespace quantrain::onnx_export
