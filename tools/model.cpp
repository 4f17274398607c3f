#include "tools/model.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/random.hpp"
#include "framework/integer/classes.hpp"
#include "framework/io/metadata.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/network/network_file.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "layers/onnx/reader.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/export/onnx/load_exported.hpp"
#include "quant/import/onnx/float_graph.hpp"
#include "quant/import/onnx/import_quantized_model.hpp"
#include "quant/import/tflite/import_tflite.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/input_quantize.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 24;

OnnxOptions onnx_options(const OnnxFlags& flags) {
  OnnxOptions options;
  for (const std::string& text : flags.shapes) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      throw WrongCall("--onnx-shape", '"', text, "\": write input=1,3,224,224");
    options.shapes[text.substr(0, equals)] =
        integers("--onnx-shape", text.substr(equals + 1), 1, kMostExtent);
  }
  options.outputs = parts(flags.outputs, ',');
  return options;
}

bool ends_with(const std::string& path, std::string_view suffix) {
  return path.size() >= suffix.size() &&
         std::equal(suffix.rbegin(), suffix.rend(), path.rbegin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

Model open_network(const std::string& path) {
  Model model{.path = path, .format = "network"};
  model.network = std::make_unique<Network>(load_network(path));
  model.network->eval();
  if (model.network->slots().preparation != nullptr) model.kind = Model::Kind::kPrepared;
  return model;
}

Model open_safetensors(const std::string& path) {
  const TensorFile file = load_safetensors(path);
  const auto format = file.metadata.find("format");
  const std::string name = format == file.metadata.end() ? "" : format->second;
  if (name == "quantrain-network") return open_network(path);
  if (name == "quantrain-integer")
    return {.path = path,
            .format = "integer model",
            .kind = Model::Kind::kInteger,
            .integer = IntegerModel::load(path)};
  if (name == "quantrain")
    throw DataError(path,
                    "holds the weights of a network without its layers: keep the whole network, "
                    "with save_network of the C++ library or --network");
  throw DataError(path,
                  "holds tensors, but no network: export the network to ONNX "
                  "(torch.onnx.export)");
}

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

[[noreturn]] void refuse_file(const std::string& path) {
  for (const std::string_view suffix : {".pt", ".pth", ".ckpt"}) {
    if (ends_with(path, suffix))
      throw DataError(path, "is PyTorch's own format: export the network with torch.onnx.export()");
  }
  for (const std::string_view suffix : {".h5", ".keras", ".pb"}) {
    if (ends_with(path, suffix))
      throw DataError(path,
                      "is TensorFlow's own format: export to .tflite, or to .onnx by tf2onnx");
  }
  throw DataError(path,
                  "is no model: expected .onnx, .tflite, a saved network, or an integer model");
}

const char* flag_given(const OnnxFlags& flags) {
  return !flags.shapes.empty()    ? "--onnx-shape"
         : !flags.outputs.empty() ? "--onnx-outputs"
         : !flags.range.empty()   ? "--onnx-range"
                                  : "--onnx-anew";
}

// What models keep of an .onnx file whose input is int8: its values are codes, 128 less than ours.
constexpr const char* kInputCodes = "input_codes";
constexpr const char* kInt8 = "int8";
constexpr int32_t kInt8Offset = 128;

/// As the model's metadata say.
std::optional<int32_t> int8_offset(const std::map<std::string, std::string>& metadata) {
  const auto codes = metadata.find(kInputCodes);
  if (codes == metadata.end() || codes->second != kInt8) return std::nullopt;
  return kInt8Offset;
}

/// Names of the inputs that the file takes as codes of int8, or quantizes to them.
std::set<std::string> int8_inputs(const onnx::Graph& graph) {
  const auto is_int8 = [&](const std::string& zero) {
    for (const onnx::StoredTensor& stored : graph.initializers) {
      if (stored.name == zero) return stored.type == onnx::ElementType::kInt8;
    }
    for (const onnx::Node& node : graph.nodes) {
      if (node.op_type != "Constant" || node.outputs.empty() || node.outputs[0] != zero) continue;
      const onnx::Attribute* const value = node.find("value");
      const auto* const stored =
          value == nullptr ? nullptr : std::get_if<onnx::StoredTensor>(&value->value);
      return stored != nullptr && stored->type == onnx::ElementType::kInt8;
    }
    return false;
  };
  std::set<std::string> quantized;
  for (const onnx::Node& node : graph.nodes) {
    if (node.op_type != "QuantizeLinear" || node.inputs.empty()) continue;
    const bool has_zero = node.inputs.size() > 2 && !node.inputs[2].empty();
    const auto named = static_cast<onnx::ElementType>(node.get("output_dtype", int64_t{0}));
    if (has_zero ? is_int8(node.inputs[2]) : named == onnx::ElementType::kInt8)
      quantized.insert(node.inputs[0]);
  }
  std::set<std::string> names;
  for (const onnx::ValueInfo& info : graph.inputs) {
    if (info.type == onnx::ElementType::kInt8 || quantized.contains(info.name))
      names.insert(info.name);
  }
  return names;
}

/// A network that is quantized in the file already.
Model open_quantized(const ModelFlags& flags, onnx::Model file) {
  const OnnxFlags& onnx_flags = flags.onnx;
  quant::QuantizedOnnxOptions options{.onnx = onnx_options(onnx_flags),
                                      .choose_anew = onnx_flags.anew};
  if (!onnx_flags.range.empty()) {
    const std::vector<float> ends = numbers("--onnx-range", onnx_flags.range);
    if (ends.size() != 2 || !(ends[0] < ends[1]))
      throw WrongCall(
          "--onnx-range", '"', onnx_flags.range, "\": write the smaller and the larger: 0,1");
    for (const onnx::ValueInfo& input : file.graph.inputs)
      options.ranges[input.name] = Range{ends[0], ends[1]};
    for (const auto& stored : file.graph.initializers) options.ranges.erase(stored.name);
  }
  Model model{.path = flags.path, .format = "ONNX", .kind = Model::Kind::kPrepared};
  const std::set<std::string> int8 = int8_inputs(file.graph);
  quant::QuantizedOnnx read = quant::import_quantized_model(std::move(file), options);
  model.needs_data = !read.report.is_complete();
  model.network = std::make_unique<Network>(std::move(read.network));
  model.network->eval();
  if (int8.contains(model.input_name())) model.network->metadata()[kInputCodes] = kInt8;
  return model;
}

Model open_onnx(const ModelFlags& flags, onnx::Model file) {
  const bool is_exported = is_exported_onnx(file);
  if (is_exported && flags.onnx.given())
    throw WrongCall(flag_given(flags.onnx),
                    "says what ",
                    flags.path,
                    " says itself, which quantrain export wrote: leave it away");
  if (is_exported)
    return {.path = flags.path,
            .format = "ONNX",
            .kind = Model::Kind::kInteger,
            .integer = load_exported_onnx(file)};
  if (onnx::is_quantized(file.graph)) return open_quantized(flags, std::move(file));
  Model model{.path = flags.path, .format = "ONNX"};
  model.network = std::make_unique<Network>(import_onnx(std::move(file), onnx_options(flags.onnx)));
  return model;
}

/// The file of an .onnx model, read once.
std::optional<onnx::Model> read_onnx(const std::string& path) {
  if (!ends_with(path, ".onnx")) return std::nullopt;
  return onnx::read_model(path);
}

Model open_file(const ModelFlags& flags, std::optional<onnx::Model> file) {
  if (file) return open_onnx(flags, std::move(*file));
  uint8_t start[16] = {};
  const size_t read = InputFile(flags.path).read(start);
  const bool is_tflite = read >= 8 && std::string_view("TFL3") ==
                                          std::string_view(reinterpret_cast<char*>(start) + 4, 4);
  if (flags.onnx.given()) throw WrongCall(flag_given(flags.onnx), "is only for .onnx files");
  if (is_tflite || ends_with(flags.path, ".tflite"))
    return {.path = flags.path,
            .format = "TFLite",
            .kind = Model::Kind::kInteger,
            .integer = import_tflite(flags.path)};
  if (read > 8 && start[8] == '{') return open_safetensors(flags.path);
  refuse_file(flags.path);
}

Model opened(const ModelFlags& flags, std::optional<onnx::Model> file) {
  Model model = open_file(flags, std::move(file));
  model.int8_offset =
      int8_offset(model.integer ? model.integer->metadata() : model.network->metadata());
  return model;
}

}  // namespace

void ModelFlags::declare(CLI::App& line) {
  declare_path(line, "MODEL");
  onnx.declare(line);
}

void ModelFlags::declare_path(CLI::App& line, const char* name) {
  line.add_option(name, path, "the .onnx, .tflite, saved network or integer model")
      ->type_name("FILE")
      ->required();
}

void OnnxFlags::declare(CLI::App& line) {
  flag(line,
       "--onnx-shape",
       shapes,
       "INPUT=N,...",
       "extents that the .onnx file leaves open, in its order: input=1,3,224,224");
  flag(line,
       "--onnx-outputs",
       outputs,
       "NAME,...",
       "values of the .onnx file to be the outputs, such as those before a log-softmax");
  flag(line,
       "--onnx-range",
       range,
       "LOW,HIGH",
       "real values of the input's codes, if a quantized .onnx file does not say them");
  line.add_flag("--onnx-anew",
                anew,
                "choose anew the quantization that cannot be kept, in quantize and finetune");
}

Model open_model(const ModelFlags& flags) { return opened(flags, read_onnx(flags.path)); }

std::pair<Model, Model> open_models(const std::string& a,
                                    const std::string& b,
                                    const OnnxFlags& flags) {
  std::optional<onnx::Model> file_a = read_onnx(a);
  std::optional<onnx::Model> file_b = read_onnx(b);
  const bool to_a = file_a && !is_exported_onnx(*file_a);
  const bool to_b = file_b && !is_exported_onnx(*file_b);
  Model first = opened({a, to_a || !to_b ? flags : OnnxFlags{}}, std::move(file_a));
  return {std::move(first), opened({b, to_b ? flags : OnnxFlags{}}, std::move(file_b))};
}

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

namespace {

/// Random codes of an input with these parameters.
void fill_random(std::span<uint8_t> codes, const QParams& params, Random& random) {
  const int64_t levels = params.type.bits == 1 ? 2 : 256;
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random.below(levels));
}

}  // namespace

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
  if (is_float) prepare(net, model, config, false);
  if (is_float || model.needs_data) quant::calibrate(net, examples_of(model, Examples::kRandom));
  return net;
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
