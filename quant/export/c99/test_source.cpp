#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/integer/classes.hpp"
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
    if (interface.has_classes) {
      const auto& logits = values[static_cast<size_t>(program.outputs[0])];
      const integer::Value& output = program.value(program.outputs[0]);
      expected.classes.push_back(
          integer::class_of(logits.data(), std::ssize(logits), integer::class_factors(output)));
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

  std::string steps, tables, arguments, comparisons;
  int64_t traced = 0;
  size_t last = 0;  // the last step that computes
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const integer::Operation& op = program.steps[i].operation;
    if (c99::is_traced(program, program.steps[i])) ++traced;
    if (!std::holds_alternative<integer::View>(op)) last = i;
    steps += cat("\n  {\"",
                 i,
                 ": ",
                 c99::comment(integer::type(op)),
                 "\", ",
                 integer::multiply_adds(op),
                 "},");
  }
  if (traced > 0) tables += c99::table<uint32_t>("uint32_t", "test_checksums", expected.checksums);
  int64_t begin = 0;
  for (const c99::Parameter& p : interface.inputs) {
    tables += c99::table<uint8_t>(
        "uint8_t",
        cat("test_", p.parameter),
        samples.subspan(static_cast<size_t>(begin), static_cast<size_t>(count * p.size)));
    begin += count * p.size;
    arguments += cat("test_", p.parameter, " + sample * ", p.size, ", ");
  }
  for (size_t i = 0; i < interface.outputs.size(); ++i) {
    const c99::Parameter& p = interface.outputs[i];
    tables += c99::table<int32_t>(p.element, cat("test_", p.parameter), expected.outputs[i]);
    tables +=
        c99::fill("TEST_OUTPUTS", {{"TYPE", p.type}, {"PARAMETER", p.parameter}, {"SIZE", p.size}});
    arguments += p.parameter + ", ";
    comparisons += c99::fill("COMPARISONS", {{"PARAMETER", p.parameter}, {"SIZE", p.size}});
  }
  if (interface.has_classes)
    tables += c99::table<int32_t>("int32_t", "test_classes", expected.classes);
  return c99::fill("test",
                   {{"NAME", options.name},
                    {"FILE", cat("\"", options.name, ".c\"")},
                    {"COUNT", count},
                    {"MEASURED", !program.steps.empty()},
                    {"STEPS", program.steps.size()},
                    {"TEST_STEPS", steps + "\n"},
                    {"TABLES", tables},
                    {"SCRATCH_WORDS", std::max<int64_t>(1, (sources.scratch_bytes + 3) / 4)},
                    {"ANY_TRACED", traced > 0},
                    {"TRACED", traced},
                    {"ARGUMENTS", arguments + "scratch"},
                    {"LAST", last},
                    {"COMPARISONS", comparisons},
                    {"HAS_CLASSES", interface.has_classes},
                    {"INPUT_SIZE", interface.inputs[0].size}});
}

}  // namespace quantrain
