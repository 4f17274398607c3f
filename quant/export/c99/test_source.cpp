#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/integer/dead_channels.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/export/c99/interface.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain {
namespace c99 {
namespace {

using integer::Program;

// FNV-1a, 32 bits.
uint32_t checksum(const uint8_t* bytes, int64_t n) {
  uint32_t hash = 2166136261u;
  for (int64_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

bool is_traced(const Program& program, const integer::Step& step) {
  return program.value(step.output).is_codes() &&
         !std::holds_alternative<integer::View>(step.operation);
}

struct Expected {
  std::vector<uint32_t> checksums;            // [samples, traced steps]
  std::vector<std::vector<int32_t>> outputs;  // for each output: [samples, size]
  std::vector<int32_t> classes;
};

Expected run_samples(const Program& program,
                     const Interface& interface,
                     std::span<const uint8_t> samples,
                     int64_t count) {
  const IntegerModel model(program);
  Expected expected;
  expected.outputs.resize(interface.outputs.size());
  for (int64_t n = 0; n < count; ++n) {
    std::vector<const uint8_t*> inputs;
    int64_t begin = 0;
    for (const Parameter& p : interface.inputs) {
      inputs.push_back(samples.data() + begin + n * p.size);
      begin += count * p.size;
    }
    std::vector<std::vector<int32_t>> values(program.values.size());
    const auto keep = [&](int id, auto* integers) {
      const int64_t size = program.value(id).shape.elements();
      values[static_cast<size_t>(id)].assign(integers, integers + size);
    };
    for (size_t i = 0; i < program.inputs.size(); ++i) keep(program.inputs[i], inputs[i]);
    model.trace(1, inputs, [&](size_t i, const void* output) {
      const integer::Step& step = program.steps[i];
      if (program.value(step.output).is_codes()) {
        const auto* codes = static_cast<const uint8_t*>(output);
        keep(step.output, codes);
        if (is_traced(program, step))
          expected.checksums.push_back(checksum(codes, integer::output_size(step.operation)));
      } else {
        keep(step.output, static_cast<const int32_t*>(output));
      }
    });
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const auto& integers = values[static_cast<size_t>(program.outputs[i])];
      expected.outputs[i].insert(expected.outputs[i].end(), integers.begin(), integers.end());
    }
    if (!interface.classify.empty()) {
      const auto& logits = values[static_cast<size_t>(program.outputs[0])];
      expected.classes.push_back(
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
  }
  return expected;
}

}  // namespace
}  // namespace c99

std::string c99_test(const integer::Program& given,
                     std::span<const uint8_t> samples,
                     const C99Options& options) {
  using c99::cat;
  const C99Sources sources = export_c99(given, options);  // checks program and options
  const integer::Program program = integer::remove_dead_channels(given);
  const c99::Interface interface =
      c99::make_interface(program, options.name, sources.scratch_bytes);
  int64_t sample_size = 0;
  for (const c99::Parameter& p : interface.inputs) sample_size += p.size;
  const auto bytes = static_cast<int64_t>(samples.size());
  if (bytes == 0 || bytes % sample_size != 0) {
    throw ShapeError(
        "c99_test", "expected whole samples of ", sample_size, " codes, got ", bytes, " codes");
  }
  const int64_t count = bytes / sample_size;
  const c99::Expected expected = c99::run_samples(program, interface, samples, count);

  std::string text = cat("/* Made by quantrain: tests ",
                         options.name,
                         ".c with ",
                         count,
                         " samples. Build this file alone: "
                         "it includes ",
                         options.name,
                         ".c. */\n#include <stdint.h>\n#include <stdio.h>\n\n"
                         "static void trace(int32_t step, const uint8_t *codes, int32_t size);\n"
                         "#define TRACE(step, codes, size) trace(step, codes, size)\n#include \"",
                         options.name,
                         ".c\"\n\n");
  std::string steps;
  int64_t traced = 0;
  size_t last = 0;  // the last step that computes
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const integer::Operation& op = program.steps[i].operation;
    if (c99::is_traced(program, program.steps[i])) ++traced;
    if (!std::holds_alternative<integer::View>(op)) last = i;
    steps += cat("  {\"",
                 i,
                 ": ",
                 c99::comment(integer::type(op)),
                 "\", ",
                 integer::multiply_adds(op),
                 "},\n");
  }
  const bool measured = !program.steps.empty();
  if (measured) {
    text +=
        cat("/* Define these to measure. Between PAUSE and RESUME, the test runs its own code. */\n"
            "#ifndef MEASURE_START\n#define MEASURE_START() (void)0\n"
            "#define MEASURE_PAUSE(step) (void)(step)\n#define MEASURE_RESUME() (void)0\n"
            "#define MEASURE_STOP(step) (void)(step)\n#endif\n"
            "struct test_step {\n  const char *name;\n  int64_t multiply_adds;\n};\n",
            "static const struct test_step test_steps[",
            program.steps.size(),
            "] = {\n",
            steps,
            "};\n");
  }
  if (traced > 0) text += c99::table<uint32_t>("uint32_t", "test_checksums", expected.checksums);
  int64_t begin = 0;
  for (const c99::Parameter& p : interface.inputs) {
    text += c99::table<uint8_t>(
        "uint8_t",
        c99::cat("test_", p.parameter),
        samples.subspan(static_cast<size_t>(begin), static_cast<size_t>(count * p.size)));
    begin += count * p.size;
  }
  for (size_t i = 0; i < interface.outputs.size(); ++i) {
    const c99::Parameter& p = interface.outputs[i];
    text += c99::table<int32_t>(p.element, c99::cat("test_", p.parameter), expected.outputs[i]);
    text += cat("static ", p.type, " ", p.parameter, "[", p.size, "];\n");
  }
  if (!expected.classes.empty())
    text += c99::table<int32_t>("int32_t", "test_classes", expected.classes);
  text += cat("static int32_t scratch[",
              std::max<int64_t>(1, (sources.scratch_bytes + 3) / 4),
              "];\nstatic int32_t sample, traced;\nstatic const char *wrong;\n\n",
              "static void trace(int32_t step, const uint8_t *codes, int32_t size) {\n");
  if (traced > 0) {
    text +=
        cat("  uint32_t hash = 2166136261u;\n  int32_t i;\n"
            "  MEASURE_PAUSE(test_steps + step);\n  for (i = 0; i < size; ++i) hash = (hash ^ "
            "codes[i]) * 16777619u;\n"
            "  if (wrong == 0 && hash != test_checksums[sample * ",
            traced,
            " + traced % ",
            traced,
            "])\n    wrong = test_steps[step].name;\n  ++traced;\n  MEASURE_RESUME();\n}\n\n");
  } else {
    text += "  (void)step;\n  (void)codes;\n  (void)size;\n}\n\n";
  }
  std::string call = cat(options.name, "_run("), compare;
  for (const c99::Parameter& p : interface.inputs)
    call += cat("test_", p.parameter, " + sample * ", p.size, ", ");
  for (const c99::Parameter& p : interface.outputs) {
    call += p.parameter + ", ";
    compare += cat("    for (i = 0; i < ",
                   p.size,
                   "; ++i) {\n      if (wrong == 0 && ",
                   p.parameter,
                   "[i] != test_",
                   p.parameter,
                   "[sample * ",
                   p.size,
                   " + i]) wrong = \"",
                   p.parameter,
                   "\";\n    }\n");
  }
  if (!expected.classes.empty()) {
    compare += cat("    traced = 0;\n    if (",
                   options.name,
                   "_classify(test_input + sample * ",
                   interface.inputs[0].size,
                   ", scratch) != test_classes[sample] && wrong == 0)\n"
                   "      wrong = \"class\";\n");
  }
  text += cat("int main(void) {\n  int32_t i, equal = 0;\n",
              traced > 0 ? "" : "  (void)trace;\n",
              "  for (sample = 0; sample < ",
              count,
              "; ++sample) {\n    wrong = 0;\n    traced = 0;\n    ",
              measured ? "MEASURE_START();\n    " : "",
              call,
              "scratch);\n",
              measured ? cat("    MEASURE_STOP(test_steps + ", last, ");\n") : "",
              compare,
              "    if (wrong == 0) {\n      ++equal;\n    } else if (sample == equal) {\n"
              "      printf(\"sample %d: %s differs\\n\", (int)sample, wrong);\n    }\n  }\n"
              "  printf(\"%d of ",
              count,
              " equal\\n\", (int)equal);\n  return equal == ",
              count,
              " ? 0 : 1;\n}\n");
  return text;
}

}  // namespace quantrain
