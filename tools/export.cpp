// quantrain export: a model as C99 or ONNX.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

struct ExportOptions {
  ModelFlags model;
  DataFlags data;
  std::string to;
  std::string output = ".";
  C99Options c99;
  bool unpacked = false;
  int64_t test = 0;
  Budget budget;
  Common common;
};

/// Codes of the test's samples: of the data, or random ones.
std::vector<uint8_t> test_codes(const ExportOptions& options, Model& model) {
  const IntegerModel& integers = *model.integer;
  std::vector<uint8_t> codes;
  if (options.data.path.empty()) {
    Random random(1);
    for (size_t i = 0; i < integers.input_count(); ++i) {
      for (int64_t k = 0; k < options.test * integers.input_shape(i).elements(); ++k)
        codes.push_back(static_cast<uint8_t>(random.below(256)));
    }
    return codes;
  }
  DataFlags data = options.data;
  data.samples = options.test;
  const Samples samples(data, model);
  for (const Batch& batch : samples.loader(model)) {
    const Floats x = batch.input.floats();
    const size_t begin = codes.size();
    const auto n = static_cast<size_t>(batch.input.elements());
    codes.resize(begin + n);
    integers.quantize_input({x.data(), n}, std::span(codes).subspan(begin));
  }
  return codes;
}

void export_to_c99(const ExportOptions& options, Model& model) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(options.output))
    throw DataError(options.output, "is no folder: make it, or name another with --output");
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const char* const suffix : {".h", ".c", "_test.c"}) {
    if (options.test > 0 || suffix[0] == '.')
      outputs.emplace_back("--name",
                           (fs::path(options.output) / (options.c99.name + suffix)).string());
  }
  check_outputs(outputs, {options.model.path});
  model.integer = integers_of(model);
  model.kind = Model::Kind::kInteger;
  const integer::Program& program = model.integer->program();
  const C99Sources sources = export_c99(program, options.c99);
  options.budget.check(sources.scratch_bytes, sources.table_bytes);
  std::string test;
  if (options.test > 0) test = c99_test(program, test_codes(options, model), options.c99);
  write_files([&] { write_c99(options.output, sources, test); });
  Report report;
  report.part("steps", "null", sources.plan);
  report.fact("ram_bytes", sources.scratch_bytes);
  report.fact("flash_bytes", sources.table_bytes);
  std::vector<std::string> files;
  for (const auto& [name, path] : outputs) files.push_back(path);
  report.list("files", files);
  print(report, options.common.json);
}

void export_by(const ExportOptions& given) {
  ExportOptions options = given;
  options.common.apply();
  options.budget.check_call();
  options.c99.pack_weights = !options.unpacked;
  const bool is_c99 = options.to == "c99";
  if (!is_c99) throw DataError("--to", options.to, " is not in this version: there is c99");
  if (!options.data.path.empty() && options.test == 0)
    throw WrongCall("--data", "is for the samples of --test N");
  Model model = open_model(options.model);
  export_to_c99(options, model);
}

}  // namespace

Run export_model(CLI::App& line) {
  const auto options = std::make_shared<ExportOptions>();
  options->model.declare(line);
  flag(line, "--to", options->to, "c99|onnx-exact|onnx-qdq|onnx-float", "what to write")
      ->required();
  flag(line, "--output", options->output, "FOLDER", "folder of the C files; the .onnx file");
  flag(line, "--name", options->c99.name, "NAME", "prefix of files and names in C");
  flag(line,
       "--test",
       options->test,
       1,
       1000000,
       "also write NAME_test.c, which compares N samples with the engine: of --data, or random");
  options->data.declare(line, false);
  flag(line, "--section", options->c99.section, "NAME", "linker section of the tables");
  line.add_flag("--unpacked", options->unpacked, "a byte for each weight of 4 bits or fewer, too");
  options->budget.declare(line);
  options->common.declare(line);
  example(line,
          "  quantrain export model.safetensors --to c99 --name digits --test 100 --data images/\n"
          "  cc -O2 digits_test.c -o digits_test && ./digits_test");
  return [options] { export_by(*options); };
}

}  // namespace quantrain::tools
