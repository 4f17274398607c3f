#include "quant/export/c99/interface.hpp"

#include <algorithm>
#include <iomanip>

#include "framework/arithmetic/stored.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/version.hpp"
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

// Whether the network has classes: it has one input and one output, the output is a vector, and the
// vector's integers share a scale, so the largest integer gives the class.
bool has_classes(const Program& program) {
  if (program.inputs.size() != 1 || program.outputs.size() != 1) return false;
  const Value& value = program.value(program.outputs[0]);
  const bool vector = value.shape.rank() > 0 && value.shape.elements() == value.shape.back();
  return vector && (value.is_codes() || value.scale.size() == 1);
}

std::string codes_text(const Parameter& p, const Value& value) {
  const QParams& params = *value.params;
  return cat("#define ",
             p.macro,
             "_SCALE ",
             number(params.scale[0]),
             "\n#define ",
             p.macro,
             "_ZERO_POINT ",
             stored_zero_point(params),
             "\n");
}

std::string input_text(const Parameter& p, const Value& value) {
  const QParams& params = *value.params;
  const int32_t offset = stored_offset(params.type);
  std::string text = cat("/* Input ",
                         p.parameter,
                         ": ",
                         shape_text(value.shape),
                         ", one byte each, row-major.\n",
                         "   real = ",
                         p.macro,
                         "_SCALE * (byte - ",
                         p.macro,
                         "_ZERO_POINT)\n   byte = real / ",
                         p.macro,
                         "_SCALE, rounded to the nearest integer, ties to the even one, plus ",
                         p.macro,
                         "_ZERO_POINT,\n          not below ",
                         params.type.qmin() + offset,
                         ", not above ",
                         params.type.qmax() + offset);
  if (!value.features.empty()) {
    text +=
        cat(",\n   where real = (raw - offset[f]) / scale[f] in float for feature f, the index"
            " along the last axis:\n");
    for (int64_t f = 0; f < value.features.size(); ++f) {
      const auto at = static_cast<size_t>(f);
      text += cat("     f = ",
                  f,
                  ": offset ",
                  number(value.features.offset[at]),
                  ", scale ",
                  number(value.features.scale[at]),
                  "\n");
    }
    text += "  ";
  }
  return text + cat(" */\n#define ", p.macro, "_SIZE ", p.size, "\n", codes_text(p, value));
}

std::string output_text(const Parameter& p, const Value& value) {
  std::string text =
      cat("/* Output ", p.parameter, ": ", shape_text(value.shape), ", row-major.\n");
  if (value.is_codes()) {
    return text + cat("   real = ",
                      p.macro,
                      "_SCALE * (output - ",
                      p.macro,
                      "_ZERO_POINT) */\n#define ",
                      p.macro,
                      "_SIZE ",
                      p.size,
                      "\n",
                      codes_text(p, value),
                      "typedef uint8_t ",
                      p.type,
                      ";\n");
  }
  if (value.scale.size() == 1) {
    text += cat("   real = ",
                p.macro,
                "_SCALE * output */\n#define ",
                p.macro,
                "_SIZE ",
                p.size,
                "\n#define ",
                p.macro,
                "_SCALE ",
                number(value.scale[0]),
                "\n");
  } else {
    text += "   real = scale[c] * output for channel c, the index along the last axis:\n";
    for (size_t c = 0; c < value.scale.size(); ++c)
      text += cat("     c = ", c, ": ", number(value.scale[c]), "\n");
    text += cat("*/\n#define ", p.macro, "_SIZE ", p.size, "\n");
  }
  return text + cat("typedef int32_t ", p.type, ";\n");
}

}  // namespace

Interface make_interface(const Program& program, const std::string& name, int64_t scratch_bytes) {
  Interface result{.name = name,
                   .macro = upper(name),
                   .inputs = {},
                   .outputs = {},
                   .scratch_bytes = scratch_bytes,
                   .run = {},
                   .classify = {}};
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
  if (has_classes(program)) {
    result.classify = cat("int32_t ", name, "_classify(const uint8_t *input, void *scratch)");
  }
  result.run = cat("void ", name, "_run(");
  for (const Parameter& p : result.inputs) result.run += cat("const uint8_t *", p.parameter, ", ");
  for (const Parameter& p : result.outputs) result.run += cat(p.type, " *", p.parameter, ", ");
  result.run += "void *scratch)";
  return result;
}

std::string header_text(const Interface& f,
                        const Program& program,
                        uint64_t content_hash,
                        int64_t table_bytes) {
  TextStream hash;
  hash.imbue(std::locale::classic());
  hash << std::hex << std::setw(16) << std::setfill('0') << content_hash;
  std::string text = cat("/* ",
                         f.name,
                         ": an integer network, made by quantrain ",
                         version(),
                         ".\n",
                         "   Hash of the network: ",
                         hash.str(),
                         "\n   Steps: ",
                         program.steps.size(),
                         ", multiply-adds: ",
                         integer::multiply_adds(program),
                         "\n   Bytes: tables ",
                         table_bytes,
                         ", scratch ",
                         f.scratch_bytes,
                         "\n\n");
  const bool simple = f.inputs.size() == 1 && f.outputs.size() == 1;
  if (simple) {
    text += cat("     #include \"",
                f.name,
                ".h\"\n\n     static int32_t scratch[",
                f.macro,
                "_SCRATCH_SIZE / 4 + 1];\n     static uint8_t input[",
                f.macro,
                "_INPUT_SIZE];\n     static ",
                f.outputs[0].type,
                " output[",
                f.macro,
                "_OUTPUT_SIZE];\n\n     int main(void) {\n       input[0] = 255;  // and so on: "
                "the codes of"
                " a sample, see below\n       ",
                f.name,
                "_run(input, output, scratch);\n       return output[0] > 0;\n     }\n\n");
  }
  const std::string guard = f.macro + "_H";
  text +=
      cat("   Outputs are the same integers on every machine. The scratch keeps nothing from one"
          " call to the next.\n   */\n#ifndef ",
          guard,
          "\n#define ",
          guard,
          "\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  for (const Parameter& p : f.inputs) text += input_text(p, program.value(p.value)) + "\n";
  for (const Parameter& p : f.outputs) text += output_text(p, program.value(p.value)) + "\n";
  text += cat("/* Bytes of scratch, which must be aligned like an int32_t. */\n#define ",
              f.macro,
              "_SCRATCH_SIZE ",
              f.scratch_bytes,
              "\n\n/* Runs one sample. */\n",
              f.run,
              ";\n");
  if (!f.classify.empty()) {
    text +=
        cat("\n/* Runs one sample and returns the index of its largest output, the lowest if"
            " several are equal. */\n",
            f.classify,
            ";\n");
  }
  return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string classify_text(const Interface& f) {
  const Parameter& output = f.outputs[0];
  return cat(f.classify,
             " {\n  ",
             output.type,
             " output[",
             output.size,
             "];\n  int32_t i, best = 0;\n",
             "  ",
             f.name,
             "_run(input, output, scratch);\n  for (i = 1; i < ",
             output.size,
             "; ++i) best = output[i] > output[best] ? i : best;\n  return best;\n}\n");
}

}  // namespace quantrain::c99
