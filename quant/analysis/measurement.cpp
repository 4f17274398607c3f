#include "quant/analysis/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/data/features.hpp"
#include "layers/record_graph.hpp"
#include "quant/analysis/batch_part.hpp"
#include "quant/analysis/pairing.hpp"
#include "quant/analysis/spread.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

// Samples that run together. The recorded passes keep all values of these samples.
constexpr int64_t kPart = 64;
// Values of an input that are kept for its percentiles, unless one row of each sample has more.
constexpr int64_t kPercentileValues = 1 << 22;

Module* module_at(Module& net, const std::string& path) {
  for (const NamedModule& entry : net.named_modules()) {
    if (entry.name == path) return entry.module;
  }
  return nullptr;
}

int product_node(const Graph& graph, const std::string& layer) {
  for (const GraphNode& node : graph.nodes()) {
    if (node.scope() == layer && node.node->traits().weight >= 0) return node.index;
  }
  return -1;
}

}  // namespace

Measurement::Measurement(Module& net, const DiagnoseOptions& options)
    : net_(net), options_(options) {
  if (Plugged(net).empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  if (options.samples < 1 || options.alone_samples < 1 || options.worst < 0) {
    throw DataError("diagnose",
                    "samples and alone_samples must be positive, worst not negative, got ",
                    options.samples,
                    ", ",
                    options.alone_samples,
                    " and ",
                    options.worst);
  }
}

void Measurement::add(const Batch& batch) {
  const std::vector<Tensor> inputs = batch.inputs();
  const int64_t n = std::min(batch.size(), options_.samples - result_.samples);
  if (n <= 0) return;
  const auto per_sample = static_cast<int64_t>(batch.labels.size()) / batch.size();
  for (int64_t first = 0; first < n; first += kPart) {
    const int64_t count = std::min(kPart, n - first);
    Part part;
    for (const Tensor& input : inputs) part.inputs.push_back(batch_part(input, first, count));
    part.labels = std::span(batch.labels)
                      .subspan(static_cast<size_t>(first * per_sample),
                               static_cast<size_t>(count * per_sample));
    for (const Tensor& target : batch.targets)
      part.targets.push_back(batch_part(target, first, count));
    add(part);
  }
}

void Measurement::add(const Part& part) {
  const DefaultRounding rounding;
  const SaturatingInputs saturating(net_);
  const Graph deployed = [&] {
    const DeployedMode mode(net_);
    return record_graph(net_, part.inputs);
  }();
  const Lowered lowered = lower(deployed, part.inputs);
  if (lowered.error != nullptr) std::rethrow_exception(lowered.error);
  const Graph floats = [&] {
    const FloatMode mode(net_);
    return record_graph(net_, part.inputs);
  }();
  if (rows_.empty()) start(deployed, floats, lowered);

  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const GraphNode& node = deployed.node(lowered.nodes[i]);
    const Codes* const codes =
        node.output.kind() == ValueKind::kCodes ? node.output.codes().get() : nullptr;
    const auto input = std::find(
        lowered.program.inputs.begin(), lowered.program.inputs.end(), static_cast<int>(i));
    const Tensor in_float =
        input != lowered.program.inputs.end()
            ? part.inputs[static_cast<size_t>(input - lowered.program.inputs.begin())]
            : paired(deployed, node, floats);
    if (in_float.defined()) {
      row.tally.add(in_float, node.output, codes);
      if (row.layer.is_input) keep_rows(row, in_float);
    } else {
      row.tally.add(node.output, codes);
    }
    if (row.product < 0) continue;
    const Tensor& product = deployed.node(row.product).output;
    if (const auto sums = TensorAccess::waiting(product)->sums()) {
      int64_t& largest = row.layer.accumulators->largest;
      for (int64_t e = 0; e < product.elements(); ++e)
        largest = std::max(largest, std::abs(int64_t{sums->values[e]}));
    }
  }
  if (alone_ < options_.alone_samples) add_alone(part);
  std::vector<Tensor> integers;
  add_integers(deployed, lowered, integers);
  add_classes(part, floats.outputs()[0], deployed.outputs()[0], integers[0]);
  add_targets(part, deployed, lowered, floats, integers);
  add_worst(part, floats.outputs()[0], integers[0]);
  result_.samples += part.inputs[0].dim(0);
}

void Measurement::start(const Graph& deployed, const Graph& floats, const Lowered& lowered) {
  model_.emplace(lowered.program);
  for (size_t i = 0; i < lowered.program.values.size(); ++i) {
    rows_.push_back(make_row(deployed, lowered, i));
    Row& row = rows_.back();
    if (row.product < 0) continue;
    const int own = product_node(floats, row.layer.name);
    Module* const layer = module_at(net_, row.layer.name);
    if (own < 0 || layer == nullptr || layer->slots().weight == nullptr) continue;
    const GraphNode& node = floats.node(own);
    const auto at = static_cast<size_t>(node.node->traits().weight);
    const Tensor bias = node.inputs.size() > at + 1 ? node.inputs[at + 1] : Tensor();
    row.layer.weights =
        diagnose_weights(*layer, deployed.node(row.product), {node.inputs[at], bias});
  }
  output_rows_ = lowered.program.outputs;
  target_errors_.resize(output_rows_.size());
}

Measurement::Row Measurement::make_row(const Graph& deployed,
                                       const Lowered& lowered,
                                       size_t value) const {
  const integer::Program& program = lowered.program;
  const integer::Value& description = program.values[value];
  const GraphNode& node = deployed.node(lowered.nodes[value]);
  const int id = static_cast<int>(value);
  Row row(description.name, last_extent(node.output.shape()));
  LayerDiagnosis& layer = row.layer;
  layer.name = description.name;
  layer.params = description.params;
  layer.is_output = std::count(program.outputs.begin(), program.outputs.end(), id) > 0;
  row.at_outputs.resize(program.outputs.size());
  const auto input = std::find(program.inputs.begin(), program.inputs.end(), id);
  if (input != program.inputs.end()) {
    layer.is_input = true;
    layer.operation = "input";
    const auto position = static_cast<size_t>(input - program.inputs.begin());
    if (auto* slot = dynamic_cast<Phased*>(net_.slots().inputs[position].get()))
      row.slots.push_back(slot);
    return row;
  }
  const integer::Step& step = *std::find_if(program.steps.begin(),
                                            program.steps.end(),
                                            [&](const integer::Step& s) { return s.output == id; });
  layer.reads = step.inputs;
  const auto operation = step.origin.about.find("operation");
  layer.operation =
      operation != step.origin.about.end() ? operation->second : std::string(type(step.operation));
  if (product(step.operation) != nullptr) {
    row.product = product_node(deployed, layer.name);
    layer.accumulators = AccumulatorDiagnosis{.bound = accumulator_bound(step.operation)};
    Module* const own = module_at(net_, layer.name);
    auto* const weight =
        own == nullptr ? nullptr : dynamic_cast<WeightQuantizer*>(own->slots().weight.get());
    if (weight != nullptr) row.slots.push_back(weight);
  }
  if (node.type() == "fake_quantize") {
    Module* const last = module_at(net_, node.scope());
    auto* output = dynamic_cast<FakeQuantize*>(last);
    if (output == nullptr && last != nullptr)
      output = dynamic_cast<FakeQuantize*>(last->slots().output.get());
    if (output != nullptr) {
      layer.slot = node.scope();
      layer.learned = is_learned(output->config().estimator) && !output->is_given();
      row.slots.push_back(output);
    }
  }
  return row;
}

void Measurement::keep_rows(Row& row, const Tensor& input) const {
  const int64_t columns = last_extent(input.shape());
  const int64_t rows = input.elements() / input.dim(0) / columns;
  const std::vector<int64_t> picked =
      spread(rows, std::max<int64_t>(1, kPercentileValues / options_.samples / columns));
  const Floats x = input.floats();
  for (int64_t i = 0; i < input.dim(0); ++i) {
    for (const int64_t at : picked) {
      const float* const first = x.data() + (i * rows + at) * columns;
      row.kept.insert(row.kept.end(), first, first + columns);
    }
  }
}

void Measurement::add_alone(const Part& part) {
  const int64_t n = std::min(part.inputs[0].dim(0), options_.alone_samples - alone_);
  std::vector<Tensor> inputs;
  for (const Tensor& input : part.inputs) inputs.push_back(batch_part(input, 0, n));
  const auto add = [&](const Tensor& in_float, const Tensor& alone, SignalNoise& to) {
    if (!in_float.defined() || !alone.defined()) return;
    const Floats a = in_float.floats();
    const Floats b = alone.floats();
    to.add(alone.elements(), a.data(), b.data());
  };
  const Graph deployed = [&] {
    const DeployedMode mode(net_);
    return record_graph(net_, inputs);
  }();
  const Lowered lowered = lower(deployed, inputs);
  const Graph floats = [&] {
    const FloatMode mode(net_);
    return record_graph(net_, inputs);
  }();
  keep_outputs(floats);
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.slots.empty()) continue;
    const PartlyDeployedMode mode(net_, row.slots);
    const Graph alone = record_graph(net_, inputs);
    const GraphNode& node = deployed.node(lowered.nodes[i]);
    if (row.layer.is_input) {
      for (size_t k = 0; k < lowered.program.inputs.size(); ++k) {
        if (lowered.program.inputs[k] == static_cast<int>(i))
          add(inputs[k], node.output, row.alone);
      }
    } else {
      add(paired(deployed, node, floats), paired(deployed, node, alone), row.alone);
    }
    for (size_t k = 0; k < row.at_outputs.size(); ++k)
      add(floats.outputs()[k], alone.outputs()[k], row.at_outputs[k]);
    const auto input = std::find(
        lowered.program.inputs.begin(), lowered.program.inputs.end(), static_cast<int>(i));
    const auto position = static_cast<size_t>(input - lowered.program.inputs.begin());
    if (row.layer.is_input && input_codes(inputs[position]) != nullptr) {
      add_output_noise(row, floats, moved_input(inputs, position, *row.layer.params));
    } else {
      add_output_noise(row, floats, alone);
    }
  }
  alone_ += n;
}

Diagnosis Measurement::finish() {
  const DefaultRounding rounding;
  if (result_.samples == 0) throw DataError("diagnose", "there is no sample to diagnose with");
  std::vector<double> noise;
  double all = 0.0;
  for (Row& row : rows_) {
    LayerDiagnosis& layer = row.layer;
    if (layer.is_input) {
      const auto columns = static_cast<size_t>(row.tally.channels());
      const InputFeatures none{std::vector<float>(columns, 0.0f),
                               std::vector<float>(columns, 1.0f)};
      layer.usual = percentile_range(row.kept, none);
    }
    row.tally.describe(layer);
    layer.snr_alone = row.alone.decibels();
    layer.output_error = output_error(row);
    double own = 0.0;
    for (const SignalNoise& at : row.at_outputs)
      own += at.noise > 0.0 ? at.noise / std::max(at.signal, 1e-30) : 0.0;
    noise.push_back(own);
    all += own;
    if (layer.accumulators) {
      layer.accumulators->headroom_bits =
          31.0 - std::log2(std::max<double>(1.0, static_cast<double>(layer.accumulators->largest)));
    }
    if (layer.weights && row.alone.noise > 0.0) {
      const double values = static_cast<double>(layer.floats.values) * static_cast<double>(alone_) /
                            static_cast<double>(result_.samples);
      layer.weights->bias_share = std::min(
          1.0, layer.weights->bias_error * layer.weights->bias_error * values / row.alone.noise);
    }
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].layer.noise_share = all > 0.0 ? noise[i] / all : 0.0;
    result_.layers.push_back(std::move(rows_[i].layer));
  }
  for (size_t k = 0; k < output_rows_.size(); ++k) {
    const std::string name = k == 0 ? "output" : "output" + std::to_string(k);
    const Tally& tally = rows_[static_cast<size_t>(output_rows_[k])].tally;
    std::vector<OutputDiagnosis> outputs = tally.outputs(name);
    target_errors_[k].describe(outputs);
    for (OutputDiagnosis& output : outputs) result_.outputs.push_back(std::move(output));
  }
  return std::move(result_);
}

}  // namespace quantrain::quant
