// quantrain run: classes, real outputs or integers of a model, to .npy or .csv.
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.hpp"
#include "framework/core/path.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/integer/classes.hpp"
#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/array_file.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

struct RunOptions {
  ModelFlags model;
  DataFlags data;
  std::string output;
  std::string as;
  int64_t number = 0;
  Common common;
};

std::vector<Tensor> real_outputs(Model& model, const DataLoader& loader) {
  if (model.integer) return predict_outputs(*model.integer, loader);
  const ComputeAsKind as_kind(model);
  return predict_outputs(*model.network, loader);
}

/// The integers of one output for all samples.
ArrayFile integer_outputs(const IntegerModel& model, const DataLoader& loader, size_t which) {
  const integer::Value& value = model.program().value(model.program().outputs[which]);
  ArrayFile file{.shape = {value.shape.begin(), value.shape.end()}};
  file.shape.insert(file.shape.begin(), 0);
  std::vector<std::vector<int32_t>> outputs(model.output_count());
  for (const Batch& batch : loader) {
    const int64_t n = batch.size();
    const Floats x = batch.input.floats();
    std::vector<uint8_t> codes(static_cast<size_t>(batch.input.elements()));
    model.quantize_input({x.data(), codes.size()}, codes);
    std::vector<std::span<int32_t>> spans;
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].resize(static_cast<size_t>(n * model.output_size(i)));
      spans.push_back(outputs[i]);
    }
    const std::vector<std::span<const uint8_t>> inputs{codes};
    model.run_codes(inputs, spans);
    file.integers.insert(file.integers.end(), outputs[which].begin(), outputs[which].end());
    file.shape[0] += n;
  }
  return file;
}

ArrayFile as_file(const Tensor& outputs) {
  const Floats values = outputs.floats();
  const Shape& shape = outputs.shape();
  return {.shape = {shape.begin(), shape.end()},
          .floats = {values.data(), values.data() + outputs.elements()}};
}

/// The class of each row of an output.
ArrayFile classes_of(const ArrayFile& outputs) {
  if (outputs.shape.size() < 2 || outputs.shape.back() < 2)
    throw DataError("--as", "classes need an output with several scores: use --as outputs");
  const int64_t scores = outputs.shape.back();
  ArrayFile file{.shape = outputs.shape};
  file.shape.pop_back();
  for (int64_t row = 0; row < std::ssize(outputs.floats) / scores; ++row) {
    const auto first = outputs.floats.begin() + row * scores;
    file.integers.push_back(static_cast<int32_t>(std::max_element(first, first + scores) - first));
  }
  return file;
}

/// A row for each sample, unless a sample has more numbers than a row can show.
void add_results(const ArrayFile& file, const std::vector<std::string>& names, Report& report) {
  const int64_t samples = file.shape[0];
  const bool is_classes = file.shape.size() == 1 && file.floats.empty();
  const auto count = std::ssize(file.floats) + std::ssize(file.integers);
  const int64_t width = samples == 0 ? 0 : count / samples;
  constexpr int64_t kMostColumns = 16;
  if (width > kMostColumns)
    return report.fact(
        "results_left_out",
        "a sample has " + std::to_string(width) + " results: --output FILE writes them");
  std::vector<std::string> columns{">sample"};
  if (is_classes) columns.insert(columns.end(), {">class", "name"});
  for (int64_t k = 0; k < width && !is_classes; ++k)
    columns.push_back(">output" + std::to_string(k));
  if (names.empty() && is_classes) columns.pop_back();
  std::vector<std::vector<Cell>> rows;
  for (int64_t i = 0; i < samples; ++i) {
    std::vector<Cell> row{i};
    for (int64_t k = i * width; k < (i + 1) * width; ++k) {
      const auto at = static_cast<size_t>(k);
      row.push_back(file.floats.empty() ? Cell(int64_t{file.integers[at]})
                                        : Cell(Rounded{double{file.floats[at]}, 4}));
    }
    if (!names.empty() && is_classes)
      row.push_back(names[static_cast<size_t>(file.integers[static_cast<size_t>(i)])]);
    rows.push_back(std::move(row));
  }
  std::vector<double> weights;  // the first samples
  for (int64_t i = 0; i < samples; ++i) weights.push_back(static_cast<double>(-i));
  report.long_table("results", std::move(columns), std::move(rows), std::move(weights), "");
}

void run_model(const RunOptions& given) {
  RunOptions options = given;
  options.common.apply();
  const std::string extension = to_text(to_path(options.output).extension());
  if (!options.output.empty() && extension != ".npy" && extension != ".csv")
    throw WrongCall("--output", '"', options.output, "\": write to a .npy or a .csv file");
  check_outputs({{"--output", options.output}},
                {options.model.path, options.data.path, options.data.target});
  Model model = open_model(options.model);
  if (options.as == "integers" && model.kind != Model::Kind::kInteger) {
    model.integer = integers_of(model);
    model.kind = Model::Kind::kInteger;
  }
  const Samples samples(options.data, model);
  const DataLoader loader = samples.loader(model);
  const auto which = static_cast<size_t>(options.number);
  if (options.as.empty()) {
    const bool has_numbers = !samples.data->targets.empty() || samples.data->target_is_input;
    options.as = model.outputs() > 1 && !has_numbers ? "classes" : "outputs";
  }
  Report report;
  report.fact("samples", samples.data->size);
  if (model.kind != Model::Kind::kFloat) {
    add_input(samples, report);
    warn_of_saturation(samples, report);
  }
  ArrayFile file;
  if (options.as == "integers") {
    if (which >= model.integer->output_count())
      throw WrongCall("--number", "the model has ", model.integer->output_count(), " outputs");
    file = integer_outputs(*model.integer, loader, which);
  } else {
    const std::vector<Tensor> outputs = real_outputs(model, loader);
    if (which >= outputs.size())
      throw WrongCall("--number", "the model has ", outputs.size(), " outputs");
    file = as_file(outputs[which]);
    if (options.as == "classes") file = classes_of(file);
  }
  if (samples.data->has_targets()) add_metrics(evaluate_model(model, loader), "", report);
  std::vector<std::string> names;
  if (options.as == "classes") names = model.classes();
  if (!names.empty() && std::ssize(names) != model.outputs()) {
    TextStream text;
    text << "names are left out: " << model.path << " names " << names.size()
         << " classes and gives " << model.outputs();
    report.warning(std::move(text).str());
    names.clear();
  }
  if (options.output.empty()) {
    add_results(file, names, report);
  } else {
    write_files([&] { write_array(options.output, file, names); });
    report.fact("output", options.output);
  }
  print(report, options.common.json, options.common.all);
}

}  // namespace

Run run(CLI::App& line) {
  const auto options = std::make_shared<RunOptions>();
  options->model.declare(line);
  options->data.declare(line);
  flag(line, "--output", options->output, "FILE", "where the results go: a .npy or a .csv");
  flag(line,
       "--as",
       options->as,
       "classes|outputs|integers",
       "what to write: the class of each sample (default, if there are several scores), real "
       "outputs, or the outputs' integers");
  flag(line, "--number", options->number, 0, 63, "which output, if the model has several");
  options->common.declare(line);
  example(line, "  quantrain run model.safetensors --data images/ --output classes.csv");
  return [options] { run_model(*options); };
}

}  // namespace quantrain::tools
