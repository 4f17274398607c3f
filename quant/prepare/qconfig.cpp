#include "quant/prepare/qconfig.hpp"

#include <array>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"
#include "quant/prepare/qconfig_json.hpp"

namespace quantrain::quant {
namespace {

struct Preset {
  std::string_view name;
  int weight_bits;
  int activation_bits;
};
constexpr Preset kPresets[] = {
    {"int8", 8, 8}, {"int4", 4, 4}, {"int2", 2, 2}, {"w4a8", 4, 8}, {"w2a8", 2, 8}};

void write(JsonWriter& json, const ActivationConfig& a) {
  const auto observer = [&] {
    if (a.observer) return write(json, *a.observer);
    json.write(nullptr);
  };
  json.object([&] {
    json.member("bits", a.bits);
    json.member("signed", a.is_signed);
    json.member("scheme", name_of(a.scheme, kSchemes));
    json.member("observer", observer);
    json.member("estimator", name_of(a.estimator, kEstimators));
    if (a.power_of_two) json.member("power_of_two", true);
    if (a.first_bits != 0) json.member("first_bits", a.first_bits);
  });
}

void write(JsonWriter& json, const LayerConfig& l) {
  json.object([&] {
    json.member("quantize", l.quantize);
    json.member("weight", [&] { write(json, l.weight); });
    json.member("activation", [&] { write(json, l.activation); });
  });
}

void write(JsonWriter& json, const std::map<std::string, LayerConfig>& layers) {
  json.object([&] {
    for (const auto& entry : layers) json.member(entry.first, [&] { write(json, entry.second); });
  });
}

LayerConfig layer_from(JsonValue json, const std::string& where) {
  LayerConfig layer;
  QConfigReader reader(json, where);
  reader.read("quantize", layer.quantize);
  layer.weight = weight_from(reader.at("weight"), where + ".weight");
  QConfigReader activation(reader.at("activation"), where + ".activation");
  activation.read("bits", layer.activation.bits);
  activation.read("signed", layer.activation.is_signed);
  activation.read("scheme", layer.activation.scheme, kSchemes);
  activation.read("estimator", layer.activation.estimator, kEstimators);
  if (activation.has("power_of_two"))
    activation.read("power_of_two", layer.activation.power_of_two);
  if (activation.has("first_bits")) activation.read("first_bits", layer.activation.first_bits);
  const JsonValue observer = activation.at("observer");
  if (!observer.is_null())
    layer.activation.observer = observer_from(observer, where + ".activation.observer");
  activation.finish();
  reader.finish();
  return layer;
}

JsonDocument document_of(std::string_view text) {
  try {
    return JsonDocument(text, {.bytes = int64_t{4} << 20, .values = 1 << 17});
  } catch (const JsonDocument::Malformed& what) {
    throw QuantError("QConfig", "the text ", what.text);
  }
}

void check(const LayerConfig& layer, const std::string& where) {
  if (const std::string wrong = fault(layer.weight); !wrong.empty())
    throw QuantError("QConfig", where, ": ", wrong);
  const int bits = layer.activation.bits;
  if (bits < kLeastBits || bits > kMostSimulatedBits) {
    throw QuantError("QConfig",
                     where,
                     ": activations have ",
                     kLeastBits,
                     " to ",
                     kMostSimulatedBits,
                     " bits, got ",
                     bits);
  }
  if (bits == 1 && layer.activation.is_signed)
    throw QuantError("QConfig", where, ": activations of 1 bit are 0 and 1: they are unsigned");
  if (const std::string wrong = FewerBits::fault(layer.activation.first_bits, bits); !wrong.empty())
    throw QuantError("QConfig", where, ": ", wrong);
  if (const LearnedRange* const learned = learned_range(layer.activation.estimator)) {
    const std::string wrong =
        learned->fault({bits, layer.activation.is_signed, false}, layer.activation.scheme);
    if (!wrong.empty()) throw QuantError("QConfig", where, ": ", wrong);
  }
  if (layer.activation.observer)
    make_observer(*layer.activation.observer);  // throws if its numbers are out of range
}

}  // namespace

FakeQuantizeConfig ActivationConfig::fake_quantize(Simulation simulation,
                                                   const ObserverSpec& unless_said) const {
  return {.type = {.bits = bits, .is_signed = is_signed, .narrow = false},
          .scheme = scheme,
          .observer = observer.value_or(unless_said),
          .estimator = estimator,
          .power_of_two = power_of_two,
          .first_bits = first_bits,
          .simulation = simulation};
}

QConfig QConfig::bits(int weight_bits, int activation_bits) {
  QConfig config;
  config.model.weight.bits = weight_bits;
  config.model.activation.bits = activation_bits;
  validate(config);
  return config;
}

QConfig QConfig::named(std::string_view name) {
  TextStream known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return bits(preset.weight_bits, preset.activation_bits);
    known << ' ' << preset.name;
  }
  throw QuantError("QConfig", "no configuration is named \"", name, "\"; known:", known.str());
}

std::vector<std::string> QConfig::names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

const LayerConfig& QConfig::of(std::string_view type, const std::string& path) const& {
  if (const auto layer = layers.find(path); layer != layers.end()) return layer->second;
  if (const auto entry = types.find(std::string(type)); entry != types.end()) return entry->second;
  return model;
}

std::string QConfig::to_json() const {
  JsonWriter json(
      [](const std::string& text) {
        return std::make_exception_ptr(
            QuantError("QConfig", "a name cannot be written as JSON: ", text));
      },
      2);
  const auto range = [&] {
    if (input_range) return json.write(std::array{input_range->min, input_range->max});
    json.write(nullptr);
  };
  json.object([&] {
    json.member("model", [&] { write(json, model); });
    json.member("types", [&] { write(json, types); });
    json.member("layers", [&] { write(json, layers); });
    json.member("input_range", range);
    json.member("output_bits", output_bits);
    json.member("simulation", name_of(simulation, kSimulations));
  });
  return std::move(json).text();
}

QConfig QConfig::from_json(std::string_view text) {
  const JsonDocument document = document_of(text);
  QConfig config;
  QConfigReader reader(document.root(), "config");
  config.model = layer_from(reader.at("model"), "config.model");
  for (const auto& [type, layer] : reader.object("types").members()) {
    const std::string name(type);
    config.types[name] = layer_from(layer, "config.types." + name);
  }
  for (const auto& [path, layer] : reader.object("layers").members()) {
    const std::string name(path);
    config.layers[name] = layer_from(layer, "config.layers." + name);
  }
  if (!reader.at("input_range").is_null()) {
    const std::vector<float> range = reader.reals32("input_range", 2);
    if (range.size() != 2)
      throw QuantError("QConfig", "config.input_range has ", range.size(), " entries, expected 2");
    config.input_range = {range[0], range[1]};
  }
  reader.read("output_bits", config.output_bits);
  reader.read("simulation", config.simulation, kSimulations);
  reader.finish();
  validate(config);
  return config;
}

void validate(const QConfig& config) {
  check(config.model, "model");
  for (const auto& [type, layer] : config.types) check(layer, type);
  for (const auto& [path, layer] : config.layers) check(layer, path);
  if (config.output_bits != 8 && config.output_bits != 32) {
    throw QuantError("QConfig", "output_bits is 8 or 32, got ", config.output_bits);
  }
  if (config.input_range) integer::input_params(*config.input_range, "QConfig.input_range");
}

}  // namespace quantrain::quant
