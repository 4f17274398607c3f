#include "quant/export/c99/export_c99.hpp"

#include <algorithm>
#include <array>
#include <iomanip>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/path.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/version.hpp"
#include "framework/integer/classes.hpp"
#include "framework/integer/dead_channels.hpp"
#include "quant/export/c99/interface.hpp"
#include "quant/export/c99/memory.hpp"
#include "quant/export/c99/products.hpp"
#include "quant/export/c99/steps.hpp"
#include "quant/export/c99/text.hpp"

namespace quantrain {
namespace c99 {
namespace {

using integer::Program;
using integer::Step;
using integer::Value;

// Headers that the exported code may include, directly or through another header: those of standard
// C, the headers that a C library's standard headers include, and arm_mve.h. An exported header of
// the same name would hide that header.
constexpr std::string_view kHeaders[] = {
    "alloca", "arm_mve", "assert",      "complex", "ctype",     "endian",  "errno",   "features",
    "fenv",   "float",   "inttypes",    "iso646",  "limits",    "locale",  "math",    "pthread",
    "setjmp", "signal",  "stdalign",    "stdarg",  "stdatomic", "stdbool", "stddef",  "stdint",
    "stdio",  "stdlib",  "stdnoreturn", "string",  "strings",   "tgmath",  "threads", "time",
    "uchar",  "unistd",  "wchar",       "wctype"};

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

void check_options(const C99Options& options) {
  const std::string& name = options.name;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto part = [&](char c) { return letter(c) || c == '_' || (c >= '0' && c <= '9'); };
  if (name.empty() || !letter(name[0]) || !std::all_of(name.begin(), name.end(), part)) {
    throw ExportError("c99",
                      "the name \"",
                      comment(name),
                      "\" is no C identifier: use letters, digits and underscores, and begin with "
                      "a letter");
  }
  if (name.size() > 48)
    throw ExportError("c99", "the name has ", name.size(), " characters: use at most 48");
  const std::string file = lower_case(name);  // some file systems ignore case
  if (std::find(std::begin(kHeaders), std::end(kHeaders), file) != std::end(kHeaders)) {
    throw ExportError(
        "c99", "the name \"", name, "\" would hide the header <", file, ".h>: choose another");
  }
  if (name == "test")
    throw ExportError(
        "c99", "the name \"test\" would clash with names of the generated test: choose another");
  const bool section = std::all_of(options.section.begin(), options.section.end(), [&](char c) {
    return part(c) || c == '.' || c == ',' || c == '$';
  });
  if (!section) {
    throw ExportError("c99",
                      "the section \"",
                      comment(options.section),
                      "\" is no section's name: use letters, digits, '.', '_', ',' and '$'");
  }
}

/// C99 guarantees that a function may have this many parameters (5.2.4.1).
constexpr size_t kMostParameters = 127;

/// Throws if a C function would have too many parameters. A step's function has one parameter for
/// each input and one for the output. If it has only one input, it may have a third parameter, for
/// local memory.
void check_parameters(const Program& program) {
  for (const Step& step : program.steps) {
    if (step.inputs.size() >= kMostParameters) {
      throw ExportError("c99",
                        program.value(step.output).name,
                        " has ",
                        step.inputs.size(),
                        " inputs: a function of C99 takes at most ",
                        kMostParameters - 1,
                        " and an output; join the inputs in several steps");
    }
  }
  const size_t ends = program.inputs.size() + program.outputs.size();
  if (ends >= kMostParameters) {
    throw ExportError("c99",
                      "the network has ",
                      ends,
                      " inputs and outputs: a function of C99 takes at most ",
                      kMostParameters - 1,
                      " and the scratch memory");
  }
}

struct PreparedProgram {
  Program program;
  Settings settings;
  SourceMemory memory;
};

PreparedProgram prepare_program(const Program& given, bool pack_weights) {
  check_parameters(given);  // before the work below
  PreparedProgram result{
      .program = integer::remove_dead_channels(given), .settings = {}, .memory = {}};
  const Program& program = result.program;
  result.settings.pack_weights = pack_weights;
  std::vector<int64_t> locals;
  for (const Step& step : program.steps) {
    result.settings.any_shift |= has_any_shift(step.operation);
  }
  for (const Step& step : program.steps)
    locals.push_back(local_bytes(step.operation, result.settings));
  result.memory = plan_source_memory(program, locals);
  return result;
}

std::string step_id(size_t i) { return cat("_", i); }

class Exporter {
 public:
  Exporter(const PreparedProgram& lowered, uint64_t hash, const C99Options& options)
      : lowered_(lowered),
        hash_(hash),
        program_(lowered.program),
        options_(options),
        interface_(make_interface(program_, options.name, lowered.memory.scratch_bytes)) {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      sources_.push_back(step_source(program_.steps[i].operation,
                                     step_id(i),
                                     lowered_.memory.orders[i],
                                     lowered_.settings,
                                     needs_));
      table_bytes_ += sources_.back().table_bytes;
    }
    for (const Parameter& output : interface_.outputs)
      table_bytes_ += static_cast<int64_t>(output.class_factors.size() * sizeof(int32_t));
  }

  C99Sources make() const {
    C99Sources result{.name = options_.name,
                      .header = header_text(interface_, program_, hash_, table_bytes_),
                      .source = {},
                      .plan = plan(),
                      .scratch_bytes = lowered_.memory.scratch_bytes,
                      .table_bytes = table_bytes_};
    result.source = source();
    return result;
  }

 private:
  std::string source() const {
    std::string text = fill("source",
                            {{"VERSION", version()},
                             {"NAME", options_.name},
                             {"FILE", cat("\"", options_.name, ".h\"")},
                             {"HAS_SECTION", !options_.section.empty()},
                             {"SECTION", cat("\"", options_.section, "\"")},
                             {"ANY_SHIFT", lowered_.settings.any_shift}});
    text += core_text();
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      if (sources_[i].text.empty()) continue;
      text += cat("\n/* ", i, ": ", describe(i), " */\n", sources_[i].text);
    }
    return cat(text, "\n", run());
  }

  // The parts of the core that this network needs.
  std::string core_text() const {
    std::string text = fill("begin");
    const bool products = !needs_.products.empty() || !needs_.depthwise.empty();
    if (needs_.requantize || (lowered_.settings.any_shift && codes())) text += fill("requantize");
    if (needs_.requantize_any) text += fill("requantize_any");
    if (needs_.softmax) text += fill("softmax");
    if (!products) return text;
    text += fill("products");
    if (codes()) text += fill("code");
    const auto gives_codes = [](const auto& form) { return form.first.codes; };
    if (std::any_of(needs_.depthwise.begin(), needs_.depthwise.end(), gives_codes))
      text += fill("store_mve");
    bool pair[2] = {}, one[2] = {}, rows[2] = {}, bits[2] = {}, pair_codes = false;
    for (const auto& [form, has_rows] : needs_.products) {
      pair_codes |= form.pair && form.codes && !form.thresholds;
      if (form.binary) {
        bits[form.pair] = true;
        continue;
      }
      const bool packed = form.bits < 8;
      (form.pair ? pair : one)[packed] = true;
      rows[packed] |= has_rows;
    }
    if (pair_codes) text += fill("store_pair");
    text += fill("groups") + fill("vectors") + fill("blocks");
    if (codes()) text += fill("store_block");
    if (pair[0]) text += fill("expand_pair") + fill("sums_pair") + fill("sums_block_pair");
    if (one[0]) text += fill("sums_one") + fill("sums_block_one");
    if (rows[0]) text += fill("sum_row");
    if (one[1]) text += fill("sum_codes");
    if (pair[1] || one[1] || rows[1]) text += fill("field");
    if (pair[1] || one[1]) text += fill("take_fields") + fill("packed_blocks");
    if (pair[1]) text += fill("packed_pair") + fill("packed_block_pair");
    if (one[1]) text += fill("packed_one") + fill("packed_block_one");
    if (rows[1]) text += fill("packed_row");
    if (bits[0] || bits[1]) text += fill("bits") + fill("count_codes");
    if (bits[0]) text += fill("count_one");
    if (bits[1]) text += fill("count_pair");
    for (const auto& [form, has_rows] : needs_.products)
      text += cat("\n", product_function(form, has_rows));
    for (const auto& [form, has_rows] : needs_.depthwise)
      text += cat("\n", depthwise_function(form, has_rows));
    return text;
  }

  bool codes() const {
    const auto requantizes = [](const auto& form) {
      return form.first.codes && !form.first.thresholds;
    };
    const auto gives_codes = [](const auto& form) { return form.first.codes; };
    return std::any_of(needs_.products.begin(), needs_.products.end(), requantizes) ||
           std::any_of(needs_.depthwise.begin(), needs_.depthwise.end(), gives_codes);
  }

  std::string describe(size_t i) const {
    const Step& step = program_.steps[i];
    std::string text = comment(program_.value(step.output).name);
    if (!text.empty()) text += ", ";
    text += cat(integer::type(step.operation));
    for (const int id : step.inputs) text += cat(" ", program_.value(id).shape);
    return text + cat(" -> ", program_.value(step.output).shape);
  }

  std::string pointer(int id) const {
    const Place& place = lowered_.memory.places[static_cast<size_t>(id)];
    switch (place.where) {
      case Place::Where::kInput:
        return interface_.inputs[static_cast<size_t>(place.position)].parameter;
      case Place::Where::kOutput:
        return interface_.outputs[static_cast<size_t>(place.position)].parameter;
      case Place::Where::kScratch: break;
    }
    const std::string at = place.position == 0 ? "memory" : cat("memory + ", place.position);
    return program_.value(id).is_codes() ? at : cat("(int32_t *)(void *)(", at, ")");
  }

  std::string run() const {
    std::string calls, copies;
    std::vector<bool> is_read(program_.inputs.size());
    const auto read = [&](int id) {
      const Place& place = lowered_.memory.places[static_cast<size_t>(id)];
      if (place.where == Place::Where::kInput) is_read[static_cast<size_t>(place.position)] = true;
      return pointer(id);
    };
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      if (sources_[i].text.empty()) continue;
      const Step& step = program_.steps[i];
      const Value& value = program_.value(step.output);
      std::string arguments;
      for (const int id : step.inputs) arguments += cat(read(id), ", ");
      arguments += pointer(step.output);
      if (sources_[i].local != nullptr) arguments += cat(", ", sources_[i].local, local(i));
      calls += fill("CALLS",
                    {{"ID", step_id(i)},
                     {"ARGUMENTS", arguments},
                     {"IS_TRACED", value.is_codes()},
                     {"INDEX", i},
                     {"OUTPUT", pointer(step.output)},
                     {"SIZE", value.shape.elements()}});
    }
    // Copies outputs whose value lies in the memory of another output or of an input.
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const int id = program_.outputs[i];
      const Place& place = lowered_.memory.places[static_cast<size_t>(id)];
      const Parameter& output = interface_.outputs[i];
      if (place.where == Place::Where::kOutput && place.position == static_cast<int64_t>(i))
        continue;
      copies +=
          fill("COPIES", {{"OUTPUT", output.parameter}, {"FROM", read(id)}, {"SIZE", output.size}});
    }
    std::string unread;
    for (size_t i = 0; i < is_read.size(); ++i) {
      if (!is_read[i]) unread += fill("UNREAD", {{"INPUT", interface_.inputs[i].parameter}});
    }
    const bool uses_memory = (calls + copies).find("memory") != std::string::npos;
    std::string text = fill("run",
                            {{"NAME", interface_.name},
                             {"PARAMETERS", interface_.parameters},
                             {"USES_MEMORY", uses_memory},
                             {"UNREAD", unread},
                             {"CALLS", calls},
                             {"COPIES", copies}});
    for (const Parameter& output : interface_.outputs) text += class_function(output);
    if (!interface_.has_classes) return text;
    const Parameter& output = interface_.outputs[0];
    return text + fill("classify",
                       {{"NAME", interface_.name},
                        {"TYPE", output.type},
                        {"SIZE", output.size},
                        {"CLASS", output.class_function}});
  }

  // The function that returns the class of a row of the output, and its table of factors.
  std::string class_function(const Parameter& output) const {
    if (output.class_function.empty()) return "";
    const std::string factors = cat(output.class_function, "_factors");
    const std::vector<int32_t>& values = output.class_factors;
    const std::string body = fill("class",
                                  {{"CLASS", output.class_function},
                                   {"TYPE", output.type},
                                   {"CLASSES", integer::class_count(program_.value(output.value))},
                                   {"ONE_SCALE", values.empty()},
                                   {"FACTORS", factors}});
    if (values.empty()) return body;
    return cat("\n", table<int32_t>("int32_t", factors, values), body);
  }

  std::string local(size_t i) const {
    if (local_bytes(program_.steps[i].operation, lowered_.settings) == 0) return "0";
    const int64_t at = lowered_.memory.locals[i];
    return at == 0 ? "scratch" : cat("(void *)(memory + ", at, ")");
  }

  std::string plan() const {
    TextStream stream;
    stream.imbue(std::locale::classic());
    stream << std::left << std::setw(5) << "step" << std::setw(28) << "operation" << std::setw(16)
           << "output" << std::right << std::setw(12) << "mult-adds" << std::setw(10) << "tables"
           << std::setw(10) << "values" << std::setw(10) << "own"
           << "\n";
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      TextStream shape;
      shape << program_.value(step.output).shape;
      stream << std::left << std::setw(5) << i << std::setw(28) << integer::type(step.operation)
             << std::setw(16) << shape.str() << std::right << std::setw(12)
             << integer::multiply_adds(step.operation) << std::setw(10) << sources_[i].table_bytes
             << std::setw(10) << lowered_.memory.values[i] << std::setw(10)
             << local_bytes(step.operation, lowered_.settings) << "\n";
    }
    stream << "scratch " << lowered_.memory.scratch_bytes << " bytes, tables " << table_bytes_
           << " bytes\n";
    return stream.str();
  }

  const PreparedProgram& lowered_;
  uint64_t hash_;  // of the given network, before its dead channels are removed
  const Program& program_;
  const C99Options& options_;
  Interface interface_;
  Needs needs_;
  std::vector<StepSource> sources_;
  int64_t table_bytes_ = 0;
};

}  // namespace
}  // namespace c99

C99Sources export_c99(const integer::Program& program, const C99Options& options) {
  c99::check_options(options);
  const c99::PreparedProgram lowered = c99::prepare_program(program, options.pack_weights);
  return c99::Exporter(lowered, integer::content_hash(program), options).make();
}

int64_t ram_bytes(const integer::Program& program, bool pack_weights) {
  return c99::prepare_program(program, pack_weights).memory.scratch_bytes;
}

void write_c99(const std::string& folder, const C99Sources& sources, const std::string& test) {
  const std::string base = to_text(to_path(folder) / to_path(sources.name));
  check_writable(base + ".h");
  check_writable(base + ".c");
  if (!test.empty()) check_writable(base + "_test.c");
  write_file(base + ".h", sources.header);
  write_file(base + ".c", sources.source);
  if (!test.empty()) write_file(base + "_test.c", test);
}

}  // namespace quantrain
