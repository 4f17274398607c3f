// Opens any MODEL, and says which flags fit it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/io/safetensors.hpp"
#include "layers/network/network_file.hpp"
#include "layers/onnx/import_onnx.hpp"
#include "layers/onnx/reader.hpp"
#include "quant/export/onnx/load_exported.hpp"
#include "quant/import/onnx/float_graph.hpp"
#include "quant/import/onnx/import_quantized_model.hpp"
#include "quant/import/tflite/import_tflite.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"

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
  const auto& metadata = model.integer ? model.integer->metadata() : model.network->metadata();
  model.int8_offset = int8_offset(metadata);
  const auto target = metadata.find(kTarget);
  model.gives_input = target != metadata.end() && target->second == kInputTarget;
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

}  // namespace quantrain::tools
