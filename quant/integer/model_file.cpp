#include <map>
#include <nlohmann/json.hpp>

#include "framework/core/error.hpp"
#include "framework/io/format.hpp"
#include "quant/integer/integer_model.hpp"
#include "quant/integer/params_attributes.hpp"
#include "quant/integer/quantized_add.hpp"
#include "quant/integer/quantized_concat.hpp"
#include "quant/integer/quantized_conv2d.hpp"
#include "quant/integer/quantized_linear.hpp"
#include "quant/integer/quantized_pool2d.hpp"
#include "quant/integer/quantized_rescale.hpp"

// IntegerModel::save and load. The metadata's "network" holds the input, the layers with their
// attributes, and the output; tensors are named "<position>.<name>".
namespace quantrain::quant {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "quantrain-integer";
constexpr const char* kVersion = "1";

using Loader = std::unique_ptr<IntegerLayer> (*)(const std::string&,
                                                 const Attributes&,
                                                 std::vector<LayerTensor>);
const std::map<std::string, Loader>& loaders() {
  static const std::map<std::string, Loader> table = {
      {"quantized_add", &QuantizedAdd::load},
      {"quantized_avg_pool2d", &QuantizedAvgPool2d::load},
      {"quantized_concat", &QuantizedConcat::load},
      {"quantized_conv2d", &QuantizedConv2d::load},
      {"quantized_flatten", &QuantizedFlatten::load},
      {"quantized_linear", &QuantizedLinear::load},
      {"quantized_max_pool2d", &QuantizedMaxPool2d::load},
      {"quantized_rescale", &QuantizedRescale::load}};
  return table;
}

Json to_json(const Attributes& attributes) {
  Json json = Json::object();
  for (const auto& [name, value] : attributes) {
    std::visit([&, &key = name](const auto& v) { json[key] = v; }, value);
  }
  return json;
}

Attributes attributes_from(const Json& json) {
  Attributes attributes;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_integer()) {
      attributes.add(name, value.get<int64_t>());
    } else if (value.is_number_float()) {
      attributes.add(name, value.get<double>());
    } else if (value.is_string()) {
      attributes.add(name, value.get<std::string>());
    } else {
      attributes.add(name, value.get<std::vector<int64_t>>());
    }
  }
  return attributes;
}

LayerTensor tensor_from(const TensorFile& file, const TensorFile::Entry& entry, std::string name) {
  switch (entry.dtype) {
    case DType::kI8: return {std::move(name), entry.shape, file.values<int8_t>(entry.name)};
    case DType::kI32: return {std::move(name), entry.shape, file.values<int32_t>(entry.name)};
    case DType::kF32: return {std::move(name), entry.shape, file.values<float>(entry.name)};
    default:
      throw DataError(
          entry.name, "an integer model has no tensors of type ", dtype_name(entry.dtype));
  }
}

IntegerModel::Parts parts_from(const Json& json, const TensorFile& file) {
  std::map<size_t, std::vector<LayerTensor>> tensors;  // by layer
  for (const TensorFile::Entry& entry : file.entries()) {
    const size_t dot = entry.name.find('.');
    if (dot == std::string::npos || dot == 0 || dot > 6 ||
        entry.name.find_first_not_of("0123456789") != dot) {
      throw DataError(entry.name, "a tensor that belongs to no layer");
    }
    tensors[std::stoul(entry.name.substr(0, dot))].push_back(
        tensor_from(file, entry, entry.name.substr(dot + 1)));
  }
  IntegerModel::Parts parts;
  const Attributes input = attributes_from(json.at("input"));
  parts.input_shape = Shape(input.integers("shape"));
  parts.input_params = params_from(input, "x", "input");
  parts.input_node = static_cast<int>(input.integer("node"));
  for (const Json& entry : json.at("layers")) {
    const size_t position = parts.layers.size();
    const auto name = entry.at("name").get<std::string>();
    const auto type = entry.at("type").get<std::string>();
    const auto loader = loaders().find(type);
    if (loader == loaders().end()) throw DataError(name, "unknown type of layer \"", type, "\"");
    IntegerModel::Layer layer;
    layer.layer =
        loader->second(name, attributes_from(entry.at("attributes")), std::move(tensors[position]));
    layer.inputs = entry.at("inputs").get<std::vector<int>>();
    layer.output = static_cast<int>(position) + 1;
    layer.node = entry.at("node").get<int>();
    parts.layers.push_back(std::move(layer));
  }
  if (!tensors.empty() && tensors.rbegin()->first >= parts.layers.size()) {
    throw DataError("network",
                    "tensors of layer ",
                    tensors.rbegin()->first,
                    ", but there are ",
                    parts.layers.size());
  }
  parts.output = json.at("output").get<int>();
  return parts;
}

}  // namespace

void IntegerModel::save(const std::string& path) const {
  TensorFile file;
  set_format(file, kFormat, kVersion);
  Attributes input{{"shape", std::vector<int64_t>(input_shape_.begin(), input_shape_.end())},
                   {"node", int64_t{input_node_}}};
  append(input, "x", input_params_);
  Json network = {{"input", to_json(input)}, {"layers", Json::array()}, {"output", output_}};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    network["layers"].push_back({{"name", layer.layer->name()},
                                 {"type", std::string(layer.layer->type())},
                                 {"inputs", layer.inputs},
                                 {"node", layer.node},
                                 {"attributes", to_json(layer.layer->attributes())}});
    for (const LayerTensor& tensor : layer.layer->tensors()) {
      std::visit(
          [&](const auto& values) {
            file.add(std::to_string(i) + "." + tensor.name,
                     tensor.shape,
                     std::span<const typename std::decay_t<decltype(values)>::value_type>(values));
          },
          tensor.values);
    }
  }
  try {
    file.metadata["network"] = network.dump();
  } catch (const Json::exception& error) {
    throw DataError(path, "a layer's name cannot be written as JSON: ", error.what());
  }
  save_safetensors(path, file);
}

IntegerModel IntegerModel::load(const std::string& path) {
  const TensorFile file = load_safetensors(path);
  check_format(path, file, kFormat, kVersion);
  const Json json = Json::parse(file.metadata_at("network"), nullptr, false);
  if (json.is_discarded()) throw DataError(path, "the network is not JSON");
  try {
    return IntegerModel(parts_from(json, file));
  } catch (const Json::exception& error) {
    throw DataError(path, "the network is not as it should be: ", error.what());
  }
}

}  // namespace quantrain::quant
