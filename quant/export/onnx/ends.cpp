#include "quant/export/onnx/ends.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/classes.hpp"
#include "quant/export/onnx/fixed_point.hpp"

namespace quantrain::onnx_export {
namespace {

using integer::Value;
using onnx::ElementType;

/// "input", or "input0", "input1", ... if there are several.
std::string end_name(const char* what, size_t i, size_t count) {
  return count == 1 ? what : what + std::to_string(i);
}

/// How an input or output is held, and its extents in the file.
struct End {
  Form form;
  std::vector<int64_t> dims;
  bool is_turned = false;  ///< channels first
};

End end_of(const Value& value, OnnxLayout layout) {
  const Shape& s = value.shape;
  const bool turns = layout == OnnxLayout::kChannelsFirst && (s.rank() == 3 || s.rank() == 2);
  if (!turns) return {.form = form_of(s), .dims = form_of(s).dims};
  if (s.rank() == 3)
    return {.form = image_form(s[0], s[1], s[2]), .dims = {s[2], s[0], s[1]}, .is_turned = true};
  return {.form = image_form(s[0], 1, s[1]), .dims = {s[1], s[0]}, .is_turned = true};
}

/// The extents of a constant for each channel.
std::vector<int64_t> channel_dims(const End& end, size_t channels) {
  if (channels == 1) return {};
  std::vector<int64_t> dims(end.is_turned ? end.dims.size() : 1, 1);
  dims[0] = static_cast<int64_t>(channels);
  return dims;
}

/// The codes of raw values.
std::string encode(Export& out, const Value& value, const End& end, std::string x) {
  const QParams& params = *value.params;
  if (!value.features.empty()) {
    const std::vector<int64_t> dims = channel_dims(end, value.features.scale.size());
    x = out.graph.node("Sub",
                       {x, out.graph.constant<float>(dims, value.features.offset, "offset")});
    x = out.graph.node("Div", {x, out.graph.constant<float>(dims, value.features.scale, "scale")});
  }
  const std::string codes =
      out.graph.node("QuantizeLinear",
                     {x,
                      out.graph.scalar<float>(params.scale[0], "scale"),
                      out.graph.scalar(static_cast<uint8_t>(stored_zero_point(params)), "zero")});
  const int32_t offset = stored_offset(params.type);
  return clamped(out.graph, codes, params.type.qmin() + offset, params.type.qmax() + offset);
}

std::string reals(Export& out, const Value& value, const End& end, const std::string& x) {
  if (value.is_codes()) {
    const QParams& params = *value.params;
    return out.graph.node(
        "DequantizeLinear",
        {x,
         out.graph.scalar<float>(params.scale[0], "scale"),
         out.graph.scalar(static_cast<uint8_t>(stored_zero_point(params)), "zero")});
  }
  // In double, as the engine: float32 would round the scale and the accumulator.
  const std::string scale =
      out.graph.constant<double>(channel_dims(end, value.scale.size()), value.scale, "scale");
  const std::string wide = cast(out.graph, x, ElementType::kDouble);
  return cast(out.graph, out.graph.node("Mul", {wide, scale}), ElementType::kFloat);
}

// The lowest index of the largest.   docs/quantization.md (12)
std::string classes(Export& out, const Value& value, const End& end, std::string x) {
  const std::vector<int32_t> factors = integer::class_factors(value);
  if (factors.size() > 1) {
    x = cast(out.graph, x, ElementType::kInt64);
    const std::vector<int64_t> wide(factors.begin(), factors.end());
    x = out.graph.node(
        "Mul",
        {x, out.graph.constant<int64_t>(channel_dims(end, wide.size()), wide, "comparable")});
  }
  const int64_t axis = end.is_turned ? 1 : std::ssize(end.dims);
  return out.graph.node("ArgMax", {x}, {{"axis", axis}, {"keepdims", int64_t{0}}});
}

ElementType integer_type(const Value& value) {
  return value.is_codes() ? ElementType::kUint8 : ElementType::kInt32;
}

/// What each step computes.
void add_steps(Export& out) {
  for (size_t i = 0; i < out.program.steps.size(); ++i) {
    const int id = out.program.steps[i].output;
    const Value& value = out.program.value(id);
    const std::string name = out.graph.take_name("step" + std::to_string(i));
    out.graph.set_scope(name);
    const Form form = form_of(value.shape);
    out.graph.node("Identity", {out.values.get(id, form)}, {}, name);
    out.graph.output(name, integer_type(value), form.dims);
  }
}

}  // namespace

std::string clamped(onnx::GraphBuilder& graph, const std::string& codes, int32_t lo, int32_t hi) {
  if (lo <= 0 && hi >= 255) return codes;
  return graph.node("Clip",
                    {codes,
                     graph.scalar(static_cast<uint8_t>(lo), "low"),
                     graph.scalar(static_cast<uint8_t>(hi), "high")});
}

void add_inputs(Export& out, const OnnxExportOptions& options) {
  const std::vector<int>& ids = out.program.inputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Value& value = out.program.value(ids[i]);
    const End end = end_of(value, options.layout);
    const std::string name = out.graph.take_name(end_name("input", i, ids.size()));
    out.graph.set_scope(name);
    const bool is_real = options.input == OnnxInput::kReal;
    out.graph.input(name, is_real ? ElementType::kFloat : ElementType::kUint8, end.dims);
    std::string codes = is_real ? encode(out, value, end, name) : name;
    // [N, C, L] is held as [N, C, L, 1].
    if (end.form.dims.size() != end.dims.size()) codes = reshape(out.graph, codes, end.form.dims);
    out.values.set(ids[i], end.form, codes);
  }
}

void add_outputs(Export& out, const OnnxExportOptions& options) {
  const std::vector<int>& ids = out.program.outputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Value& value = out.program.value(ids[i]);
    const End end = end_of(value, options.layout);
    const std::string name = out.graph.take_name(end_name("output", i, ids.size()));
    out.graph.set_scope(name);
    std::string x = out.values.get(ids[i], end.form);
    if (end.form.dims.size() != end.dims.size()) x = reshape(out.graph, x, end.dims);
    std::vector<int64_t> dims = end.dims;
    ElementType type = ElementType::kFloat;
    switch (options.output) {
      case OnnxOutput::kReal:
        if (!out.reals.contains(ids[i])) x = reals(out, value, end, x);
        break;
      case OnnxOutput::kIntegers: type = integer_type(value); break;
      case OnnxOutput::kClasses:
        if (dims.empty())
          throw ExportError("onnx", value.name, " has one number for each sample, and no classes");
        type = ElementType::kInt64;
        x = classes(out, value, end, x);
        dims.erase(end.is_turned ? dims.begin() : dims.end() - 1);
        break;
    }
    out.graph.node("Identity", {x}, {}, name);
    out.graph.output(name, type, dims);
  }
  if (options.all_steps) add_steps(out);
}

}  // namespace quantrain::onnx_export
