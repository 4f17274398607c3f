#include <array>

#include "framework/core/error.hpp"
#include "quant/prepare/prepared_form.hpp"
#include "quant/prepare/qconfig_json.hpp"

namespace quantrain::quant {
namespace {

constexpr int64_t kMostEntries = 1 << 14;  // inputs, layers and features
const Names<Outside> kOutsides = {{Outside::kRefuse, "refuse"},
                                  {Outside::kRefuseMost, "refuse_most"},
                                  {Outside::kSaturate, "saturate"}};

void write(JsonWriter& json, const InputForm& input) {
  json.object([&] {
    json.member("name", input.name);
    json.member("scale", input.params.scale[0]);
    json.member("zero_point", input.params.zero_point[0]);
    json.member("outside", name_of(input.outside, kOutsides));
    if (input.features.empty()) return;
    json.member("offsets", input.features.offset);
    json.member("scales", input.features.scale);
  });
}

void write(JsonWriter& json, const FakeQuantizeConfig& config) {
  json.object([&] {
    json.member("bits", config.type.bits);
    json.member("signed", config.type.is_signed);
    json.member("scheme", name_of(config.scheme, kSchemes));
    json.member("estimator", name_of(config.estimator, kEstimators));
    if (config.power_of_two) json.member("power_of_two", true);
    if (config.first_bits != 0) json.member("first_bits", config.first_bits);
    json.member("simulation", name_of(config.simulation, kSimulations));
    json.member("observer", [&] { write(json, config.observer); });
    if (config.range) json.member("range", std::array{config.range->min, config.range->max});
  });
}

void write(JsonWriter& json, const LayerForm& layer) {
  json.object([&] {
    json.member("layer", layer.path);
    if (layer.weight) {
      if (layer.weight_name.empty()) {
        throw QuantError(layer.path,
                         "computes its weight from its parameters, which a file cannot describe");
      }
      json.member("weight", [&] { write(json, *layer.weight); });
      json.member("parameters",
                  std::array<std::string_view, 2>{layer.weight_name, layer.bias_name});
    }
    if (layer.product) json.member("product", *layer.product);
    if (layer.output) json.member("output", [&] { write(json, *layer.output); });
  });
}

InputForm input_from(JsonValue json, const std::string& where) {
  QConfigReader reader(json, where);
  InputForm input;
  input.name = reader.text("name");
  input.params.scale = {reader.real32("scale")};
  input.params.zero_point = {static_cast<int32_t>(reader.integer("zero_point", 0, 255))};
  reader.read("outside", input.outside, kOutsides);
  if (reader.has("offsets")) {
    input.features.offset = reader.reals32("offsets", kMostEntries);
    input.features.scale = reader.reals32("scales", kMostEntries);
  }
  reader.finish();
  return input;
}

FakeQuantizeConfig output_from(JsonValue json, const std::string& where) {
  QConfigReader reader(json, where);
  FakeQuantizeConfig config;
  reader.read("bits", config.type.bits);
  reader.read("signed", config.type.is_signed);
  reader.read("scheme", config.scheme, kSchemes);
  reader.read("estimator", config.estimator, kEstimators);
  if (reader.has("power_of_two")) reader.read("power_of_two", config.power_of_two);
  if (reader.has("first_bits")) reader.read("first_bits", config.first_bits);
  reader.read("simulation", config.simulation, kSimulations);
  config.observer = observer_from(reader.at("observer"), where + ".observer");
  if (reader.has("range")) {
    const std::vector<float> range = reader.reals32("range", 2);
    if (range.size() != 2) throw QuantError(where, "a range has two ends, got ", range.size());
    config.range = {range[0], range[1]};
  }
  reader.finish();
  return config;
}

LayerForm layer_from(JsonValue json, size_t position) {
  const std::string where = "quantization.layers " + std::to_string(position);
  QConfigReader reader(json, where);
  LayerForm layer{.path = reader.text("layer")};
  if (reader.has("weight")) {
    layer.weight = weight_from(reader.at("weight"), where + ".weight");
    const std::vector<JsonValue> names = reader.list("parameters", 2);
    for (const JsonValue& name : names) {
      if (!name.text()) throw QuantError(where, "a parameter's name is no text");
    }
    if (names.size() != 2 || names[0].text()->empty())
      throw QuantError(where, "`parameters` are the names of weight and bias");
    layer.weight_name = std::string(*names[0].text());
    layer.bias_name = std::string(*names[1].text());
  }
  if (reader.has("product")) layer.product = reader.text("product");
  if (reader.has("output")) layer.output = output_from(reader.at("output"), where + ".output");
  reader.finish();
  return layer;
}

}  // namespace

std::string to_json(const PreparedForm& form) {
  JsonWriter json([](const std::string& text) {
    return std::make_exception_ptr(
        QuantError("quantization", "a name cannot be written as JSON: ", text));
  });
  json.object([&] {
    json.member("config", form.config.to_json());
    json.member("simulation", name_of(form.simulation, kSimulations));
    json.member("inputs", [&] {
      json.list([&] {
        for (const InputForm& input : form.inputs) write(json, input);
      });
    });
    json.member("layers", [&] {
      json.list([&] {
        for (const LayerForm& layer : form.layers) write(json, layer);
      });
    });
  });
  return std::move(json).text();
}

PreparedForm form_from_json(std::string_view text) {
  const auto document = [&] {
    try {
      return std::make_unique<JsonDocument>(text);
    } catch (const JsonDocument::Malformed& what) {
      throw QuantError("quantization", "the text ", what.text);
    }
  }();
  QConfigReader reader(document->root(), "quantization");
  PreparedForm form;
  form.config = QConfig::from_json(reader.text("config"));
  reader.read("simulation", form.simulation, kSimulations);
  for (const JsonValue json : reader.list("inputs", kMostEntries))
    form.inputs.push_back(
        input_from(json, "quantization.inputs " + std::to_string(form.inputs.size())));
  for (const JsonValue json : reader.list("layers", kMostEntries))
    form.layers.push_back(layer_from(json, form.layers.size()));
  reader.finish();
  if (form.inputs.empty()) throw QuantError("quantization", "there is no input");
  return form;
}

}  // namespace quantrain::quant
