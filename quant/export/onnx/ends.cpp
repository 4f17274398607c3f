#include "quant/export/onnx/ends.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/classes.hpp"
#include "quant/export/onnx/fixed_point.hpp"

namespace quantrain::onnx_export {
namespace {

using integer::Value;
using onnx::channel_dims;
using onnx::ElementType;
using onnx::end_form;
using onnx::end_name;

/// The codes of raw values.
std::string encode(Export& out, const Value& value, const Form& form, std::string x) {
  const QParams& params = *value.params;
  if (!value.features.empty()) {
    const std::vector<int64_t> dims = channel_dims(form, value.features.size());
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

std::string reals(Export& out, const Value& value, const Form& form, const std::string& x) {
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
      out.graph.constant<double>(channel_dims(form, std::ssize(value.scale)), value.scale, "scale");
  const std::string wide = cast(out.graph, x, ElementType::kDouble);
  return cast(out.graph, out.graph.node("Mul", {wide, scale}), ElementType::kFloat);
}

// The lowest index of the largest.   docs/quantization.md (12)
std::string classes(Export& out, const Value& value, const Form& form, std::string x) {
  const std::vector<int32_t> factors = integer::class_factors(value);
  if (factors.size() > 1) {
    x = cast(out.graph, x, ElementType::kInt64);
    const std::vector<int64_t> wide(factors.begin(), factors.end());
    x = out.graph.node(
        "Mul",
        {x, out.graph.constant<int64_t>(channel_dims(form, std::ssize(wide)), wide, "comparable")});
  }
  const int64_t axis = form.channels_first ? 1 : std::ssize(form.dims);
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
    const Form form = end_form(value.shape, options.layout);
    const std::string name = out.graph.take_name(end_name("input", i, ids.size()));
    out.graph.set_scope(name);
    const bool is_real = options.input == OnnxInput::kReal;
    out.graph.input(name, is_real ? ElementType::kFloat : ElementType::kUint8, form.dims);
    out.values.set(ids[i], form, is_real ? encode(out, value, form, name) : name);
  }
}

void add_outputs(Export& out, const OnnxExportOptions& options) {
  const std::vector<int>& ids = out.program.outputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Value& value = out.program.value(ids[i]);
    const Form form = end_form(value.shape, options.layout);
    const std::string name = out.graph.take_name(end_name("output", i, ids.size()));
    out.graph.set_scope(name);
    std::string x = out.values.get(ids[i], form);
    std::vector<int64_t> dims = form.dims;
    ElementType type = ElementType::kFloat;
    switch (options.output) {
      case OnnxOutput::kReal:
        if (!out.reals.contains(ids[i])) x = reals(out, value, form, x);
        break;
      case OnnxOutput::kIntegers: type = integer_type(value); break;
      case OnnxOutput::kClasses:
        if (dims.empty())
          throw ExportError("onnx", value.name, " has one number for each sample, and no classes");
        type = ElementType::kInt64;
        x = classes(out, value, form, x);
        dims.erase(form.channels_first ? dims.begin() : dims.end() - 1);
        break;
    }
    out.graph.node("Identity", {x}, {}, name);
    out.graph.output(name, type, dims);
  }
  if (options.all_steps) add_steps(out);
}

}  // namespace quantrain::onnx_export
