// quantrain quantize: quantization after training.
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "layers/network/copy_network.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"
#include "tools/results.hpp"

namespace quantrain::tools {
namespace {

struct QuantizeOptions {
  ModelFlags model;
  DataFlags data;
  TestFlags test;
  BitsFlags bits;
  int64_t calibration = 1024;
  ResultFlags results;
  Budget budget;
  Common common;
};

/// The signal-to-noise ratio of the integers' outputs.
Cell outputs_to_noise(Model& floats, const Model& integers, const Samples& samples) {
  constexpr int64_t kCompared = 1024;  // samples
  const ComputeAsKind in_float(floats);
  const std::vector<Tensor> expected =
      predict_outputs(*floats.network, samples.loader(floats, kCompared));
  const std::vector<Tensor> got =
      predict_outputs(*integers.integer, samples.loader(integers, kCompared));
  double signal = 0.0;
  double noise = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Floats a = expected[i].floats();
    const Floats b = got[i].floats();
    for (int64_t k = 0; k < expected[i].elements(); ++k) {
      const double real = a.data()[k];
      const double change = b.data()[k] - real;
      signal += real * real;
      noise += change * change;
    }
  }
  return decibels(signal, noise);
}

void quantize_model(const QuantizeOptions& options) {
  options.common.apply();
  options.budget.check_call();
  const quant::QConfig config = options.bits.read();
  check_outputs({{"--output", options.results.output}, {"--network", options.results.network}},
                {options.model.path,
                 options.data.path,
                 options.data.target,
                 options.test.path,
                 options.test.target,
                 options.bits.config});
  Model model = open_model(options.model);
  if (model.kind != Model::Kind::kFloat && !model.needs_data)
    throw DataError(
        model.path,
        "is ",
        model.description(),
        ", expected a network of floats",
        model.kind == Model::Kind::kPrepared
            ? ": quantrain export takes it as it is, and quantrain finetune trains it on"
            : "");
  if (model.needs_data && options.bits.given())
    throw WrongCall("--bits", kOnlyForFloats, "; ", model.path, " has bits");
  const Parts parts = read_parts(options.data, options.test, model, false);
  if (!model.needs_data) describe(model, parts.training);
  if (options.budget.given()) {
    Network trial = prepared_copy(model, config);
    const DeviceSize size = device_size(quant::convert(trial, examples_of(model)));
    options.budget.check(size.ram, size.flash);
  }

  Report report;
  report.fact("model", model.description());
  add_input(parts.training, report);
  warn_of_saturation(parts, report);
  const bool judged = parts.test.data->has_targets();
  report.fact("judged_by", parts.test_name);
  report.fact("samples", parts.test.data->size);
  if (judged) {
    const Metrics metrics = evaluate_model(model, parts.test.loader(model));
    add_metrics(metrics, "float", report);
    const auto accuracy = metrics.find("accuracy");
    if (accuracy != metrics.end() && accuracy->second < 0.5)
      report.note(
          "If the network does better elsewhere: say how its inputs were normalized "
          "(--mean, --deviation, --range), and check the order of the classes.");
  }
  Network net = copy(*model.network);
  if (!model.needs_data) prepare(net, model, config, false);
  quant::calibrate(net,
                   parts.training.loader(
                       Form::kCodes, spread(parts.training.data->size, options.calibration), {}));
  Model integers{.path = model.path, .kind = Model::Kind::kInteger};
  {
    Model prepared{.path = model.path,
                   .kind = Model::Kind::kPrepared,
                   .network = std::make_unique<Network>(std::move(net))};
    integers.integer = integers_of(prepared);
    net = std::move(*prepared.network);
  }
  if (judged) {
    add_metrics(evaluate_model(integers, parts.test.loader(integers)), "integer", report);
  } else {
    report.fact("signal_to_noise", outputs_to_noise(model, integers, parts.test));
  }
  options.results.write(*integers.integer, net, report);
  if (!options.results.given()) report.note(kNothingWritten);
  print(report, options.common.json, options.common.all);
}

}  // namespace

Run quantize(CLI::App& line) {
  const auto options = std::make_shared<QuantizeOptions>();
  options->model.declare(line);
  options->data.declare(line);
  options->test.declare(line);
  options->bits.declare(line);
  flag(line,
       "--calibration",
       options->calibration,
       1,
       int64_t{1} << 40,
       "choose ranges from N samples, spread over the data (default 1024)");
  options->results.declare(line, "the prepared network, for finetune or diagnose");
  options->budget.declare(line);
  options->common.declare(line);
  example(line,
          "  quantrain quantize network.onnx --data images/ --mean 0.286 --deviation 0.353 "
          "--output model.safetensors");
  return [options] { quantize_model(*options); };
}

}  // namespace quantrain::tools
