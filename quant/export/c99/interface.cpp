#include "quant/export/c99/interface.hpp"

#include <algorithm>
#include <iomanip>

#include "framework/arithmetic/stored.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/version.hpp"
#include "framework/integer/classes.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using integer::Program;
using integer::Value;

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string shape_text(const Shape& shape) {
  TextStream stream;
  stream << shape;
  return stream.str();
}

// Names the C function that returns the class of a row of the output, and its factors. Only rows of
// several integers have classes, and only if the scales repeat with the rows.
void add_classes(Parameter& output, const Value& value, std::string function) {
  const auto count = static_cast<size_t>(integer::class_count(value));
  const std::vector<int32_t> factors = integer::class_factors(value);
  if (count < 2 || count % factors.size() != 0) return;
  output.class_function = std::move(function);
  for (size_t c = 0; factors.size() > 1 && c < count; ++c)
    output.class_factors.push_back(factors[c % factors.size()]);
}

template <class T>
std::string float_table(std::string_view type,
                        const std::string& name,
                        const std::vector<T>& values) {
  std::vector<std::string> items;
  for (const T value : values) items.push_back(number(value));
  return cat("static const ", type, " ", name, "[", values.size(), "] = {\n", list(items), "};\n");
}

std::string input_text(const std::string& name, const Parameter& p, const Value& value) {
  const QParams& params = *value.params;
  const int32_t offset = stored_offset(params.type);
  return fill("INPUTS",
              {{"NAME", name},
               {"PARAMETER", p.parameter},
               {"SHAPE", shape_text(value.shape)},
               {"MACRO", p.macro},
               {"LOW", params.type.qmin() + offset},
               {"HIGH", params.type.qmax() + offset},
               {"FEATURES", !value.features.empty()},
               {"COUNT", value.features.size()},
               {"SIZE", p.size},
               {"SCALE", number(params.scale[0])},
               {"ZERO", stored_zero_point(params)}});
}

std::string encoder_text(const std::string& name, const Parameter& p, const Value& value) {
  const QType& type = value.params->type;
  const std::string prefix = cat(name, "_", p.parameter);
  return fill("ENCODERS",
              {{"NAME", name},
               {"PARAMETER", p.parameter},
               {"MACRO", p.macro},
               {"LOW", type.qmin() + stored_offset(type)},
               {"HIGH", type.qmax() + stored_offset(type)},
               {"FEATURES", !value.features.empty()},
               {"SCALE_TABLES",
                float_table("float", prefix + "_offset", value.features.offset) +
                    float_table("float", prefix + "_scale", value.features.scale)}});
}

bool has_one_scale(const Value& value) { return value.is_codes() || value.scale.size() == 1; }

std::string output_text(const std::string& name, const Parameter& p, const Value& value) {
  const bool codes = value.is_codes(), one_scale = has_one_scale(value);
  std::string real = cat("real = ", p.macro, "_SCALE * output");
  if (codes) real = cat("real = ", p.macro, "_SCALE * (output - ", p.macro, "_ZERO_POINT)");
  if (!one_scale) {
    real = cat("real = ",
               name,
               "_",
               p.parameter,
               "_scale[c] * output for channel c, the index along the last axis.");
  }
  std::string scale;
  if (one_scale) scale = codes ? number(value.params->scale[0]) : number(value.scale[0]);
  return fill("OUTPUTS",
              {{"NAME", name},
               {"PARAMETER", p.parameter},
               {"SHAPE", shape_text(value.shape)},
               {"REAL", real},
               {"MACRO", p.macro},
               {"SIZE", p.size},
               {"ONE_SCALE", one_scale},
               {"SCALE", scale},
               {"CODES", codes},
               {"ZERO", codes ? stored_zero_point(*value.params) : 0},
               {"ELEMENT", p.element},
               {"TYPE", p.type}});
}

std::string decoder_text(const std::string& name, const Parameter& p, const Value& value) {
  return fill("DECODERS",
              {{"NAME", name},
               {"PARAMETER", p.parameter},
               {"MACRO", p.macro},
               {"TYPE", p.type},
               {"CODES", value.is_codes()},
               {"ONE_SCALE", has_one_scale(value)},
               {"COUNT", value.scale.size()},
               {"SCALE_TABLES",
                float_table("double", cat(name, "_", p.parameter, "_scale"), value.scale)}});
}

}  // namespace

Interface make_interface(const Program& program, const std::string& name, int64_t scratch_bytes) {
  Interface result{.name = name,
                   .macro = upper(name),
                   .inputs = {},
                   .outputs = {},
                   .scratch_bytes = scratch_bytes,
                   .parameters = {}};
  const auto parameters = [&](const std::vector<int>& ids, const std::string& word) {
    std::vector<Parameter> list;
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string number = ids.size() > 1 ? cat("_", i) : "";
      const Value& value = program.value(ids[i]);
      list.push_back({.parameter = word + number,
                      .macro = result.macro + "_" + upper(word) + number,
                      .type = cat(name, "_", word, number),
                      .element = value.is_codes() ? "uint8_t" : "int32_t",
                      .size = value.shape.elements(),
                      .value = ids[i]});
    }
    return list;
  };
  result.inputs = parameters(program.inputs, "input");
  result.outputs = parameters(program.outputs, "output");
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const std::string number = result.outputs.size() > 1 ? cat("_", i) : "";
    add_classes(result.outputs[i], program.value(program.outputs[i]), cat(name, "_class", number));
  }
  const Value& output = program.value(program.outputs[0]);
  result.has_classes = result.inputs.size() == 1 && result.outputs.size() == 1 &&
                       !result.outputs[0].class_function.empty() &&
                       output.shape.elements() == output.shape.back();
  for (const Parameter& p : result.inputs)
    result.parameters += cat("const uint8_t *", p.parameter, ", ");
  for (const Parameter& p : result.outputs)
    result.parameters += cat(p.type, " *", p.parameter, ", ");
  result.parameters += "void *scratch";
  return result;
}

std::string header_text(const Interface& f,
                        const Program& program,
                        uint64_t content_hash,
                        int64_t table_bytes) {
  TextStream hash;
  hash.imbue(std::locale::classic());
  hash << std::hex << std::setw(16) << std::setfill('0') << content_hash;
  std::string inputs, outputs, encoders, decoders, classes;
  for (const Parameter& p : f.inputs) {
    inputs += input_text(f.name, p, program.value(p.value));
    encoders += encoder_text(f.name, p, program.value(p.value));
  }
  for (const Parameter& p : f.outputs) {
    const Value& value = program.value(p.value);
    outputs += output_text(f.name, p, value);
    decoders += decoder_text(f.name, p, value);
    if (p.class_function.empty()) continue;
    classes += fill("CLASS_FUNCTIONS",
                    {{"CLASSES", integer::class_count(value)},
                     {"PARAMETER", p.parameter},
                     {"CLASS", p.class_function},
                     {"TYPE", p.type}});
  }
  return fill("header",
              {{"NAME", f.name},
               {"MACRO", f.macro},
               {"VERSION", version()},
               {"HASH", hash.str()},
               {"STEPS", program.steps.size()},
               {"MULTIPLY_ADDS", integer::multiply_adds(program)},
               {"TABLE_BYTES", table_bytes},
               {"SCRATCH_BYTES", f.scratch_bytes},
               {"SIMPLE", f.inputs.size() == 1 && f.outputs.size() == 1},
               {"TYPE", f.outputs[0].type},
               {"INPUTS", inputs},
               {"OUTPUTS", outputs},
               {"PARAMETERS", f.parameters},
               {"CLASS_FUNCTIONS", classes},
               {"HAS_CLASSES", f.has_classes},
               {"ENCODERS", encoders},
               {"DECODERS", decoders}});
}

}  // namespace quantrain::c99
