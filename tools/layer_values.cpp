#include "tools/layer_values.hpp"

#include <algorithm>
#include <utility>

#include "layers/network/copy_network.hpp"
#include "layers/record_graph.hpp"
#include "quant/analysis/pairing.hpp"
#include "quant/lowering/lowering.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::tools {
namespace {

LayerValues values_of(std::string name, const Tensor& tensor) {
  LayerValues values{.name = std::move(name), .shape = tensor.shape()};
  const Floats real = tensor.floats();
  const int64_t n = tensor.elements();
  values.real.assign(real.data(), real.data() + n);
  const std::shared_ptr<const Codes> codes = tensor.kind() == ValueKind::kCodes ? tensor.codes()
                                             : tensor.kind() == ValueKind::kFloat
                                                 ? tensor.source_codes()
                                                 : nullptr;
  if (codes == nullptr || codes->params.per_channel() || codes->storage != CodeStorage::kU8)
    return values;
  values.params = codes->params;
  for (int64_t i = 0; i < n; ++i) values.codes.push_back(int32_t{codes->u8()[i]} - codes->offset());
  return values;
}

LayerValues values_of(const integer::Value& value, int64_t n, const void* output) {
  std::vector<int64_t> extents(value.shape.begin(), value.shape.end());
  extents.insert(extents.begin(), n);
  LayerValues values{.name = value.name, .shape = Shape(std::span<const int64_t>(extents))};
  const auto count = static_cast<size_t>(values.shape.elements());
  values.real.resize(count);
  if (!value.is_codes()) {
    const auto* const sums = static_cast<const int32_t*>(output);
    for (size_t i = 0; i < count; ++i)
      values.real[i] = static_cast<float>(value.scale[i % value.scale.size()] * sums[i]);
    return values;
  }
  values.params = value.params;
  const QParams& params = *value.params;
  const int32_t offset = Codes::offset(CodeStorage::kU8, params.type);
  values.codes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    values.codes[i] = int32_t{static_cast<const uint8_t*>(output)[i]} - offset;
    values.real[i] = params.scale[0] * static_cast<float>(values.codes[i] - params.zero_point[0]);
  }
  return values;
}

bool is_output(const integer::Program& program, size_t id) {
  return std::find(program.outputs.begin(), program.outputs.end(), static_cast<int>(id)) !=
         program.outputs.end();
}

}  // namespace

LayerRunner::LayerRunner(Model& model, const Samples& samples) : model_(model), samples_(samples) {
  if (model.kind != Model::Kind::kFloat) return;
  constexpr int64_t kCalibration = 32;
  try {
    Network net = copy(*model.network);
    const DataLoader some = samples.loader(
        Form::kCodes, spread(samples.data->size, kCalibration), {.batch = kCalibration});
    const Batch batch = *some.begin();
    quant::prepare_ptq(net, batch.input, quant::QConfig::int8());
    quant::calibrate(net, batch.input);
    prepared_ = std::move(net);
  } catch (const Error&) {
    // It has no integer form: then its outputs are compared.
  }
}

AllValues LayerRunner::run(const std::vector<int64_t>& rows) {
  return model_.integer ? run_integers(rows) : run_network(rows);
}

AllValues LayerRunner::run_network(const std::vector<int64_t>& rows) {
  const auto batch = [&](Form form) {
    const DataLoader loader = samples_.loader(form, rows, {.batch = std::ssize(rows)});
    return Batch(*loader.begin()).input;
  };
  const bool in_float = model_.kind == Model::Kind::kFloat;
  AllValues all;
  std::optional<Graph> floats;
  Tensor x;
  if (in_float) {
    x = batch(Form::kFloats);
    floats.emplace(record_graph(*model_.network, x));
    size_t number = 0;
    for (const Tensor& output : floats->outputs())
      all.outputs.push_back(values_of("output" + std::to_string(number++), output));
    if (!prepared_) return all;
  }
  Network& net = in_float ? *prepared_ : *model_.network;
  const quant::DeployedMode deployed(net);
  const std::vector<Tensor> codes{batch(Form::kCodes)};
  const Graph graph = record_graph(net, codes);
  const quant::Lowered lowered = quant::lower(graph, codes);
  if (!in_float) {
    size_t number = 0;
    for (const Tensor& output : graph.outputs())
      all.outputs.push_back(values_of("output" + std::to_string(number++), output));
  }
  if (lowered.error != nullptr) return all;
  for (size_t id = 0; id < lowered.nodes.size(); ++id) {
    if (is_output(lowered.program, id)) continue;
    const std::string& name = lowered.program.values[id].name;
    const auto& inputs = lowered.program.inputs;
    const bool is_input =
        std::find(inputs.begin(), inputs.end(), static_cast<int>(id)) != inputs.end();
    const GraphNode& node = graph.node(lowered.nodes[id]);
    const Tensor values = !in_float  ? node.output
                          : is_input ? x
                                     : quant::paired(graph, node, *floats);
    if (values.defined()) all.layers.push_back(values_of(is_input ? "input" : name, values));
  }
  return all;
}

AllValues LayerRunner::run_integers(const std::vector<int64_t>& rows) {
  const IntegerModel& model = *model_.integer;
  const integer::Program& program = model.program();
  const auto n = static_cast<int64_t>(rows.size());
  const DataLoader loader = samples_.loader(Form::kRaw, rows, {.batch = n});
  const Tensor input = Batch(*loader.begin()).input;
  const Floats x = input.floats();
  std::vector<uint8_t> codes(static_cast<size_t>(input.elements()));
  model.quantize_input({x.data(), codes.size()}, codes);
  AllValues all;
  const integer::Value& first = program.value(program.inputs[0]);
  all.layers.push_back(values_of(first, n, codes.data()));
  all.layers.back().name = "input";
  std::vector<std::optional<LayerValues>> outputs(program.outputs.size());
  const uint8_t* const pointers[] = {codes.data()};
  model.trace(n, pointers, [&](size_t step, const void* output) {
    const int id = program.steps[step].output;
    LayerValues values = values_of(program.value(id), n, output);
    bool gives_output = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (program.outputs[i] == id) {
        outputs[i] = values;
        gives_output = true;
      }
    }
    if (!gives_output) all.layers.push_back(std::move(values));
  });
  for (size_t i = 0; i < outputs.size(); ++i) {
    LayerValues values = outputs[i] ? std::move(*outputs[i]) : all.layers.front();
    values.name = "output" + std::to_string(i);
    all.outputs.push_back(std::move(values));
  }
  return all;
}

}  // namespace quantrain::tools
