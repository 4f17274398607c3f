// quantrain info: layers, shapes, parameters, multiply-adds, and the size on a device.
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/text_stream.hpp"
#include "framework/integer/program_table.hpp"
#include "layers/summary.hpp"
#include "quant/lowering/convert.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"

namespace quantrain::tools {
namespace {

Cell shape_cell(std::vector<int64_t> shape) {
  return shape.empty() ? Cell(std::string("unknown")) : Cell(std::move(shape));
}

void add_inputs(const Model& model, Report& report) {
  std::vector<std::vector<Cell>> rows;
  for (size_t i = 0; i < model.inputs(); ++i) {
    const std::optional<Meaning> meaning = model.meaning(i);
    Cell low, high;
    std::string features = "none";
    if (meaning) {
      const Range range = meaning->params.float_range();
      low = Rounded{static_cast<double>(range.min), 4};
      high = Rounded{static_cast<double>(range.max), 4};
      if (!meaning->features.empty()) {
        TextStream text;
        text << "mean " << meaning->features.offset[0] << ", deviation "
             << meaning->features.scale[0];
        if (meaning->features.size() > 1) text << ", ... (" << meaning->features.size() << ")";
        features = std::move(text).str();
      }
    }
    rows.push_back({model.input_name(i), shape_cell(model.input_shape(i)), low, high, features});
  }
  report.table("inputs", {"input", "shape", ">low", ">high", "normalization"}, std::move(rows));
}

void add_layers(const Model& model, Report& report) {
  std::vector<std::vector<Cell>> rows;
  if (model.integer) {
    for (const integer::StepSummary& step : integer::summary(model.integer->program())) {
      rows.push_back({step.name,
                      step.kernel,
                      shape_cell({step.output.begin(), step.output.end()}),
                      step.weight_bits > 0 ? Cell(int64_t{step.weight_bits}) : Cell(),
                      int64_t{step.output_bits},
                      step.bytes,
                      step.multiply_adds});
    }
    report.table(
        "layers",
        {"layer", "kernel", "output", ">weight_bits", ">output_bits", ">bytes", ">multiply_adds"},
        std::move(rows));
    return;
  }
  const Summary all = summary(*model.network, examples_of(model));
  for (const LayerSummary& layer : all.layers) {
    // The network itself quantizes its input, if it is prepared.
    if (layer.name.empty() && layer.parameters + layer.multiply_adds == 0) continue;
    // Of one sample, like the shapes of inputs. A prepared network does not run what is folded.
    const bool is_folded = layer.output.empty() && model.kind == Model::Kind::kPrepared;
    std::vector<int64_t> output = layer.output;
    if (!output.empty()) output.erase(output.begin());
    rows.push_back({layer.name.empty() ? "(itself)" : layer.name,
                    layer.type,
                    is_folded ? Cell(std::string("folded")) : shape_cell(std::move(output)),
                    layer.parameters,
                    layer.multiply_adds});
  }
  report.table(
      "layers", {"layer", "type", "output", ">parameters", ">multiply_adds"}, std::move(rows));
  report.fact("parameters", all.parameters);
  report.fact("multiply_adds", all.multiply_adds);
}

void add_device(Model& model, Report& report) {
  const auto add = [&](const IntegerModel& integers, const std::string& as) {
    const DeviceSize size = device_size(integers);
    report.fact("on_a_device", as);
    add_size(size, report);
  };
  if (model.kind != Model::Kind::kFloat) {
    try {
      add(integers_of(model), "as C99");
    } catch (const Error& error) {
      report.fact("on_a_device", std::string(error.what()));
    }
    return;
  }
  try {
    Network net = prepared_copy(model, quant::QConfig::int8());
    add(quant::convert(net, examples_of(model)), "as C99, with 8 bits");
  } catch (const Error&) {
    report.fact("on_a_device", "no integer form: quantrain plan lists why");
  }
}

struct InfoOptions {
  ModelFlags model;
  Common common;
};

void print_info(const InfoOptions& options) {
  options.common.apply();
  Model model = open_model(options.model);
  Report report;
  report.fact("model", model.description());
  if (const std::vector<std::string> classes = model.classes(); !classes.empty())
    report.list("classes", classes);
  add_inputs(model, report);
  add_layers(model, report);
  if (model.integer) {
    report.fact("bytes", model.integer->size_bytes());
    report.fact("multiply_adds", integer::multiply_adds(model.integer->program()));
    add_kept(*model.integer, report);
  }
  add_device(model, report);
  print(report, options.common.json, options.common.all);
}

}  // namespace

Run info(CLI::App& line) {
  const auto options = std::make_shared<InfoOptions>();
  options->model.declare(line);
  options->common.declare(line);
  example(line, "  quantrain info network.onnx");
  return [options] { print_info(*options); };
}

}  // namespace quantrain::tools
