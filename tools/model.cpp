#include "tools/model.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/integer/classes.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/integer/program_constants.hpp"
#include "framework/io/metadata.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/onnx/reader.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/input_quantize.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::tools {
namespace {

/// None if there are more than `most`: old files have names between commas, and one has a comma.
std::vector<std::string> names_in_metadata(const IntegerModel& model,
                                           const char* key,
                                           int64_t most) {
  std::vector<std::string> names = metadata_names(model, key);
  if (std::ssize(names) > most) names.clear();
  return names;
}

/// Names in an .onnx file of the values that the last nodes read.
std::string before_the_end(const std::string& path) {
  const onnx::Graph graph = onnx::read_model(path).graph;
  std::string names;
  for (const onnx::ValueInfo& output : graph.outputs) {
    for (const onnx::Node& node : graph.nodes) {
      const bool makes_it =
          std::find(node.outputs.begin(), node.outputs.end(), output.name) != node.outputs.end();
      if (makes_it && !node.inputs.empty()) names += (names.empty() ? "" : ",") + node.inputs[0];
    }
  }
  return names;
}

quant::QConfig without_first_bits(quant::QConfig config) {
  const auto clear = [](quant::LayerConfig& layer) {
    layer.weight.first_bits = layer.activation.first_bits = 0;
  };
  clear(config.model);
  for (auto& [type, layer] : config.types) clear(layer);
  for (auto& [path, layer] : config.layers) clear(layer);
  return config;
}

/// Random codes of an input with these parameters.
void fill_random(std::span<uint8_t> codes, const QParams& params, Random& random) {
  const int64_t levels = params.type.bits == 1 ? 2 : 256;
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random.below(levels));
}

}  // namespace

size_t Model::inputs() const { return integer ? integer->input_count() : network->inputs().size(); }

std::vector<int64_t> Model::input_shape(size_t i) const {
  if (!integer) return network->inputs()[i].shape;
  const Shape& shape = integer->input_shape(i);
  return {shape.begin(), shape.end()};
}

std::string Model::input_name(size_t i) const {
  if (!integer) return network->inputs()[i].name;
  const integer::Program& program = integer->program();
  return program.value(program.inputs[i]).name;
}

std::optional<Meaning> Model::meaning(size_t i) const {
  if (integer) return Meaning{integer->input_params(i), integer->input_features(i)};
  const auto& slots = network->slots().inputs;
  if (i < slots.size()) {
    if (const auto* const slot = dynamic_cast<const quant::InputQuantize*>(slots[i].get()))
      return Meaning{slot->params(),
                     slot->features() ? *slot->features() : integer::InputFeatures{}};
  }
  const NetworkInput& input = network->inputs()[i];
  if (!input.range) return std::nullopt;
  return Meaning{integer::input_params(*input.range, input.name), input.features};
}

int64_t Model::outputs() const {
  if (integer) {
    const integer::Program& program = integer->program();
    return integer::class_count(program.value(program.outputs[0]));
  }
  const EvaluationMode evaluation(*network);
  const NoGrad no_grad;
  std::optional<quant::FloatMode> floats;
  if (kind == Kind::kPrepared) floats.emplace(*network);
  const Shape shape = (*network)(examples_of(*this))[0].shape();
  return shape.rank() > 1 ? shape.back() : 1;
}

ComputeAsKind::ComputeAsKind(Model& model) {
  if (model.kind != Model::Kind::kPrepared) return;
  model.needs_data ? static_cast<void>(floats_.emplace(*model.network))
                   : static_cast<void>(deployed_.emplace(*model.network));
}

std::vector<std::string> Model::classes() const {
  return integer ? names_in_metadata(*integer, "classes", outputs()) : network->classes();
}

std::vector<std::string> Model::columns() const {
  return integer ? names_in_metadata(*integer, "features", integer->input_shape(0).back())
                 : network->inputs()[0].feature_names;
}

std::string Model::description() const {
  const char* const what = kind == Kind::kFloat      ? "a network of floats"
                           : kind == Kind::kPrepared ? "a prepared network"
                                                     : "an integer model";
  return std::string(what) + (format == "ONNX" || format == "TFLite" ? " (" + format + ")" : "");
}

IntegerModel integers_of(Model& model) {
  if (model.integer) return *model.integer;
  if (model.kind == Model::Kind::kFloat)
    throw DataError(model.path,
                    "is a network of floats: make integers of it with quantrain quantize, or with "
                    "quantrain finetune");
  return quant::convert(*model.network, examples_of(model));
}

std::vector<std::vector<uint8_t>> random_codes(const IntegerModel& model, int64_t n) {
  std::vector<std::vector<uint8_t>> codes;
  Random random(1);
  for (size_t i = 0; i < model.input_count(); ++i) {
    codes.emplace_back(static_cast<size_t>(n * model.input_shape(i).elements()));
    fill_random(codes.back(), model.input_params(i), random);
  }
  return codes;
}

std::vector<Tensor> examples_of(const Model& model, Examples values, int64_t n) {
  std::vector<Tensor> examples;
  for (size_t i = 0; i < model.inputs(); ++i) {
    std::vector<int64_t> extents = model.input_shape(i);
    if (extents.empty())
      throw DataError(
          model.path, "does not say the shape of its input \"", model.input_name(i), '"');
    extents.insert(extents.begin(), n);
    const Shape shape{std::span<const int64_t>(extents)};
    const std::optional<Meaning> meaning = model.meaning(i);
    auto codes = std::make_shared<Codes>();
    codes->params =
        meaning ? meaning->params : integer::input_params({0.0f, 1.0f}, model.input_name(i));
    if (meaning && !meaning->features.empty())
      codes->features = std::make_shared<const integer::InputFeatures>(meaning->features);
    codes->bytes = Buffer<uint8_t>(shape.elements());
    const std::span<uint8_t> bytes(codes->bytes.data(), static_cast<size_t>(shape.elements()));
    Random random(1, i);
    if (values == Examples::kRandom) {
      fill_random(bytes, codes->params, random);
    } else {
      std::fill(bytes.begin(), bytes.end(), static_cast<uint8_t>(codes->params.zero_point[0]));
    }
    examples.push_back(Tensor::decoded(shape, std::move(codes)));
  }
  return examples;
}

void prepare(Network& net, const Model& model, const quant::QConfig& config, bool will_train) {
  const std::vector<Tensor> examples = examples_of(model);
  try {
    will_train ? quant::prepare_qat(net, examples, config)
               : quant::prepare_ptq(net, examples, config);
  } catch (const GraphError& error) {
    if (model.format != "ONNX" ||
        std::string_view(error.what()).find("integer form") == std::string::npos)
      throw;
    throw GraphError(model.path,
                     error.what(),
                     "; if it is the last part of the network, --onnx-outputs ",
                     before_the_end(model.path),
                     " takes the values before it as outputs");
  }
}

Network prepared_copy(const Model& model, const quant::QConfig& config) {
  Network net = copy(*model.network);
  const bool is_float = model.kind == Model::Kind::kFloat;
  if (is_float) prepare(net, model, without_first_bits(config), false);
  if (is_float || model.needs_data) quant::calibrate(net, examples_of(model, Examples::kRandom));
  return net;
}

void add_kept(const IntegerModel& model, Report& report) {
  integer::Program program = model.program();  // shares the weights
  integer::set_keep(program, KeepWeights::kFast);
  report.fact("kept_bytes_fast", integer::kept_bytes(program));
  integer::set_keep(program, KeepWeights::kSmall);
  report.fact("kept_bytes_small", integer::kept_bytes(program));
}

DeviceSize device_size(const IntegerModel& model) {
  const C99Sources sources = export_c99(model.program());
  return {sources.scratch_bytes, sources.table_bytes};
}

void add_size(const DeviceSize& size, Report& report) {
  report.fact("ram_bytes", size.ram);
  report.fact("flash_bytes", size.flash);
}

}  // namespace quantrain::tools
