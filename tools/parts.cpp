// Data to learn from and data to judge by.
#include <CLI/CLI.hpp>
#include <utility>

#include "framework/core/path.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/core/text_stream.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {

void TestFlags::declare(CLI::App& line) {
  flag(line, "--test", path, "FILE", "other samples, to judge by; of an IDX folder, its test part");
  flag(line, "--test-target", target, "FILE", "their --target, if it is a file");
}

Parts read_parts(const DataFlags& flags, const TestFlags& test, const Model& model, bool hold_out) {
  DataFlags training = flags;
  Data own = read_data(training, model);
  const bool has_parts = own.format == "IDX" && flags.split.empty();
  if (has_parts) {
    training.split = "train";
    own = read_data(training, model);
  }
  const auto data = std::make_shared<const Data>(std::move(own));
  const Samples samples(data, training, model);
  if (test.path.empty() && !has_parts) {
    Parts parts{samples, samples, {}, {}, "the same samples"};
    // One at random of each ten: every tenth row may be of one class.
    for (int64_t i = 0; hold_out && i < data->size; ++i) {
      const auto block = i / 10;
      const auto chosen = static_cast<int64_t>(SplitMix64::mix(static_cast<uint64_t>(block)) % 10);
      (i % 10 == chosen ? parts.test_rows : parts.training_rows).push_back(i);
    }
    if (hold_out && !parts.test_rows.empty()) parts.test_name = "one of ten samples, held out";
    return parts;
  }
  DataFlags other = flags;
  if (!test.path.empty()) {
    other.path = test.path;
    other.split.clear();
    other.samples = 0;
    if (to_path(test.path).extension() != ".csv" && flags.target != "input")
      other.target = test.target;
  } else {
    other.split = "test";
  }
  Samples judge{std::make_shared<const Data>(read_data(other, model, data->classes)), other, model};
  judge.reading = samples.reading;
  return {samples, judge, {}, {}, test.path.empty() ? "the test part" : test.path};
}

void describe(Model& model, const Samples& samples) {
  std::vector<NetworkInput> inputs = model.network->inputs();
  inputs[0].shape = samples.data->shape;
  inputs[0].range = samples.reading.range;
  inputs[0].features = samples.reading.features;
  if (inputs[0].feature_names.empty()) inputs[0].feature_names = samples.data->columns;
  model.network->describe_inputs(std::move(inputs));
  if (model.network->classes().empty() && !samples.data->classes.empty())
    model.network->set_classes(samples.data->classes);
  keep_target(*model.network, samples);
}

void keep_target(Network& net, const Samples& samples) {
  if (samples.data->target_is_input) {
    net.metadata()[kTarget] = kInputTarget;
  } else if (samples.data->has_targets()) {
    net.metadata().erase(kTarget);
  }
}

void add_input(const Samples& samples, Report& report) {
  const Range input = samples.reading.input;
  const Range raw = samples.reading.raw;
  report.fact("input_low", Rounded{static_cast<double>(input.min), 4});
  report.fact("input_high", Rounded{static_cast<double>(input.max), 4});
  if (samples.data->bytes.empty() || raw == input) return;
  TextStream text;
  text << raw.min << " to " << raw.max;
  report.fact("bytes_mean", std::move(text).str());
}

void add_metrics(const Metrics& metrics, const std::string& of, Report& report) {
  for (const auto& [name, value] : metrics)
    report.fact(of.empty() ? name : name + "_" + of,
                name == "accuracy" ? percent(value) : Cell(Rounded{value, 4}));
}

}  // namespace quantrain::tools
