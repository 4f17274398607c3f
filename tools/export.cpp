// quantrain export: a model as C99 or ONNX.
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "layers/onnx/export_onnx.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/export/onnx/export_onnx.hpp"
#include "quant/export/onnx/qdq_differences.hpp"
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
  std::string output;
  C99Options c99;
  std::string input = "real";
  std::string result = "real";
  std::string layout = "nchw";
  bool int4 = false;
  bool unpacked = false;
  int64_t test = 0;
  Budget budget;
  Common common;
};

/// Codes of `count` samples: of the data, or random ones.
std::vector<uint8_t> test_codes(const ExportOptions& options,
                                Model& model,
                                int64_t count,
                                Report& report) {
  const IntegerModel& integers = *model.integer;
  std::vector<uint8_t> codes;
  if (options.data.path.empty()) {
    for (const std::vector<uint8_t>& input : random_codes(integers, count))
      codes.insert(codes.end(), input.begin(), input.end());
    return codes;
  }
  DataFlags data = options.data;
  data.samples = count;
  const Samples samples(data, model);
  warn_of_saturation(samples, report);
  for (const Batch& batch : samples.loader(model)) {
    const Floats x = batch.input.floats();
    const size_t begin = codes.size();
    const auto n = static_cast<size_t>(batch.input.elements());
    codes.resize(begin + n);
    integers.quantize_input({x.data(), n}, std::span(codes).subspan(begin));
  }
  return codes;
}

/// Throws: WrongCall if a flag is given that is for another form.
void check_form(const ExportOptions& options) {
  const bool is_c99 = options.to == "c99";
  const bool has_integers = is_c99 || options.to == "onnx-exact" || options.to == "onnx-qdq";
  const auto only = [&](bool given, const char* name, bool fits, const char* form) {
    if (given && !fits) throw WrongCall(name, "is only for --to ", form);
  };
  only(options.test > 0, "--test", is_c99, "c99");
  only(options.c99.name != C99Options{}.name, "--name", is_c99, "c99");
  only(!options.c99.section.empty(), "--section", is_c99, "c99");
  only(options.unpacked, "--unpacked", is_c99, "c99");
  only(options.budget.given(), "--ram and --flash", is_c99, "c99");
  only(
      !options.data.path.empty(), "--data", is_c99 || options.to == "onnx-qdq", "c99 and onnx-qdq");
  only(options.int4, "--int4", options.to == "onnx-qdq", "onnx-qdq");
  only(options.input != "real", "--onnx-input", has_integers && !is_c99, "onnx-exact and onnx-qdq");
  only(options.result != "real",
       "--onnx-output",
       has_integers && !is_c99,
       "onnx-exact and onnx-qdq");
  only(options.layout != "nchw", "--onnx-layout", !is_c99, "onnx");
  if (!is_c99 && options.output.empty())
    throw WrongCall("--output", "is missing: the .onnx file to write");
  if (!options.data.path.empty() && is_c99 && options.test == 0)
    throw WrongCall("--data", "is for the samples of --test N");
}

OnnxLayout layout_of(const ExportOptions& options) {
  return options.layout == "nhwc" ? OnnxLayout::kChannelsLast : OnnxLayout::kChannelsFirst;
}

void export_integers_to_onnx(const ExportOptions& options, Model& model) {
  check_outputs({{"--output", options.output}},
                {options.model.path, options.data.path, options.data.target});
  model.integer = integers_of(model);
  model.kind = Model::Kind::kInteger;
  const bool is_qdq = options.to == "onnx-qdq";
  const OnnxExportOptions form{
      .form = is_qdq ? OnnxForm::kQdq : OnnxForm::kExact,
      .input = options.input == "codes" ? OnnxInput::kCodes : OnnxInput::kReal,
      .output = options.result == "integers"  ? OnnxOutput::kIntegers
                : options.result == "classes" ? OnnxOutput::kClasses
                                              : OnnxOutput::kReal,
      .layout = layout_of(options),
      .int4_weights = options.int4};
  Report report;
  if (is_qdq) {
    // Runtimes round these layers in floats: how many codes that changes is known beforehand.
    constexpr int64_t kSamples = 64;
    std::vector<std::vector<Cell>> rows;
    std::vector<double> weights;
    for (const QdqDifference& layer :
         qdq_differences(model.integer->program(), test_codes(options, model, kSamples, report))) {
      rows.push_back(
          {layer.layer, layer.codes, layer.different, percent(layer.share()), int64_t{layer.most}});
      weights.push_back(layer.share());
    }
    report.long_table("layers",
                      {"layer", ">codes", ">codes_that_will_differ", ">share", ">by_at_most"},
                      std::move(rows),
                      std::move(weights),
                      ", where fewer differ");
  }
  write_files([&] { export_onnx(model.integer->program(), options.output, form); });
  report.list("files", {options.output});
  print(report, options.common.json, options.common.all);
}

void export_floats_to_onnx(const ExportOptions& options, Model& model) {
  if (model.kind != Model::Kind::kFloat)
    throw ExportError(model.path,
                      "is ",
                      model.description(),
                      ", expected a network of floats: use --to onnx-exact or onnx-qdq");
  check_outputs({{"--output", options.output}}, {options.model.path});
  write_files([&] {
    export_onnx(*model.network, options.output, OnnxFloatOptions{.layout = layout_of(options)});
  });
  Report report;
  report.list("files", {options.output});
  print(report, options.common.json, options.common.all);
}

void export_to_c99(const ExportOptions& options, Model& model) {
  if (!is_folder(options.output))
    throw DataError(options.output, "is no folder: make it, or name another with --output");
  std::vector<std::pair<std::string, std::string>> outputs;
  for (const char* const suffix : {".h", ".c", "_test.c"}) {
    if (options.test > 0 || suffix[0] == '.')
      outputs.emplace_back("--name",
                           to_text(to_path(options.output) / to_path(options.c99.name + suffix)));
  }
  check_outputs(outputs, {options.model.path, options.data.path, options.data.target});
  model.integer = integers_of(model);
  model.kind = Model::Kind::kInteger;
  const integer::Program& program = model.integer->program();
  const C99Sources sources = export_c99(program, options.c99);
  options.budget.check(sources.scratch_bytes, sources.table_bytes);
  Report report;
  std::string test;
  if (options.test > 0)
    test = c99_test(program, test_codes(options, model, options.test, report), options.c99);
  write_files([&] { write_c99(options.output, sources, test); });
  report.note(sources.plan);
  add_size({sources.scratch_bytes, sources.table_bytes}, report);
  std::vector<std::string> files;
  for (const auto& [name, path] : outputs) files.push_back(path);
  report.list("files", files);
  print(report, options.common.json, options.common.all);
}

void export_by(const ExportOptions& given) {
  ExportOptions options = given;
  options.common.apply();
  options.budget.check_call();
  options.c99.pack_weights = !options.unpacked;
  check_form(options);
  if (options.to == "c99" && options.output.empty()) options.output = ".";
  Model model = open_model(options.model);
  if (options.to == "c99") {
    export_to_c99(options, model);
  } else if (options.to == "onnx-float") {
    export_floats_to_onnx(options, model);
  } else {
    export_integers_to_onnx(options, model);
  }
}

}  // namespace

Run export_model(CLI::App& line) {
  const auto options = std::make_shared<ExportOptions>();
  options->model.declare(line);
  flag(line, "--to", options->to, "c99|onnx-exact|onnx-qdq|onnx-float", "what to write")
      ->required();
  flag(line, "--output", options->output, "FILE", "folder of the C files (default .); .onnx file");
  flag(line, "--name", options->c99.name, "NAME", "prefix of files and names in C");
  flag(line,
       "--test",
       options->test,
       1,
       1000000,
       "also write NAME_test.c, which compares N samples with the engine: of --data, or random");
  options->data.declare(line, false);
  flag(line, "--section", options->c99.section, "NAME", "linker section of the tables");
  flag(line,
       "--onnx-input",
       options->input,
       "real|codes",
       "what the .onnx file takes: values as the data have them (default), or codes");
  flag(line,
       "--onnx-output",
       options->result,
       "real|integers|classes",
       "what it gives: real outputs (default), their integers, or the class");
  flag(line,
       "--onnx-layout",
       options->layout,
       "nchw|nhwc",
       "order of its images and signals (default nchw)");
  line.add_flag("--int4", options->int4, "weights of 4 bits and fewer as int4, in onnx-qdq");
  line.add_flag("--unpacked", options->unpacked, "a byte for each weight of 4 bits or fewer, too");
  options->budget.declare(line);
  options->common.declare(line);
  example(line,
          "  quantrain export model.safetensors --to c99 --name digits --test 100 --data images/\n"
          "  cc -O2 digits_test.c -o digits_test && ./digits_test");
  return [options] { export_by(*options); };
}

}  // namespace quantrain::tools
