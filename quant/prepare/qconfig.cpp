#include "quant/prepare/qconfig.hpp"

#include <array>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain::quant {
namespace {

struct Preset {
  std::string_view name;
  int weight_bits;
  int activation_bits;
};
constexpr Preset kPresets[] = {
    {"int8", 8, 8}, {"int4", 4, 4}, {"int2", 2, 2}, {"w4a8", 4, 8}, {"w2a8", 2, 8}};

template <class E>
using Names = std::vector<std::pair<E, const char*>>;
const Names<QScheme> kSchemes = {{QScheme::kAffine, "affine"}, {QScheme::kSymmetric, "symmetric"}};
const Names<Estimator> kEstimators = {{Estimator::kClamped, "clamped"},
                                      {Estimator::kPlain, "plain"},
                                      {Estimator::kLearned, "learned"}};
const Names<Simulation> kSimulations = {{Simulation::kInteger, "integer"},
                                        {Simulation::kFloat, "float"}};

template <class E>
const char* name_of(E value, const Names<E>& names) {
  for (const auto& [entry, name] : names) {
    if (entry == value) return name;
  }
  return "";
}

void write(JsonWriter& json, const WeightConfig& w) {
  json.object([&] {
    json.member("bits", w.bits);
    json.member("narrow", w.narrow);
    json.member("per_channel", w.per_channel);
    json.member("scheme", name_of(w.scheme, kSchemes));
    json.member("estimator", name_of(w.estimator, kEstimators));
  });
}

void write(JsonWriter& json, const ObserverSpec& spec) {
  const auto member = [&](const char* key, const auto& value) { json.member(key, value); };
  json.object([&] {
    json.member("kind", kind(spec));
    std::visit([&](const auto& options) { options.describe(options, member); }, spec);
  });
}

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

/// Reads an object of the configuration. Errors say where the object is.
class Reader : public JsonReader {
 public:
  Reader(JsonValue json, const std::string& where)
      : JsonReader(json,
                   [where](const std::string& text) {
                     return std::make_exception_ptr(QuantError("QConfig", where, ": ", text));
                   }),
        where_(where) {}

  void read(const char* key, bool& value) { value = boolean(key); }
  void read(const char* key, int& value) {
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    value = static_cast<int>(integer(key, -kMost, kMost));
  }
  void read(const char* key, float& value) { value = real32(key); }
  void read(const char* key, double& value) { value = real(key); }
  template <class E>
  void read(const char* key, E& value, const Names<E>& names) {
    const std::string name = text(key);
    for (const auto& [entry, known] : names) {
      if (name == known) {
        value = entry;
        return;
      }
    }
    throw QuantError("QConfig", where_, ".", key, " has an unknown value: \"", name, "\"");
  }
  JsonValue object(const char* key) {
    const JsonValue json = at(key);
    if (!json.is_object())
      throw QuantError("QConfig", where_, ".", key, " is ", json, ", expected an object");
    return json;
  }

 private:
  std::string where_;
};

ObserverSpec observer_from(JsonValue json, const std::string& where) {
  Reader reader(json, where);
  ObserverSpec spec = observer_spec(reader.text("kind"));
  const auto read = [&](const char* key, auto& value) { reader.read(key, value); };
  std::visit([&](auto& options) { options.describe(options, read); }, spec);
  reader.finish();
  return spec;
}

LayerConfig layer_from(JsonValue json, const std::string& where) {
  LayerConfig layer;
  Reader reader(json, where);
  reader.read("quantize", layer.quantize);
  Reader weight(reader.at("weight"), where + ".weight");
  weight.read("bits", layer.weight.bits);
  weight.read("narrow", layer.weight.narrow);
  weight.read("per_channel", layer.weight.per_channel);
  weight.read("scheme", layer.weight.scheme, kSchemes);
  weight.read("estimator", layer.weight.estimator, kEstimators);
  weight.finish();
  Reader activation(reader.at("activation"), where + ".activation");
  activation.read("bits", layer.activation.bits);
  activation.read("signed", layer.activation.is_signed);
  activation.read("scheme", layer.activation.scheme, kSchemes);
  activation.read("estimator", layer.activation.estimator, kEstimators);
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
  if (layer.weight.bits < 2 || layer.weight.bits > 8) {
    throw QuantError("QConfig", where, ": weights have 2 to 8 bits, got ", layer.weight.bits);
  }
  if (layer.weight.estimator == Estimator::kLearned && layer.weight.scheme == QScheme::kAffine) {
    throw QuantError("QConfig", where, ": a learned scale needs symmetric weights");
  }
  if (layer.activation.bits < 2 || layer.activation.bits > 16) {
    throw QuantError(
        "QConfig", where, ": activations have 2 to 16 bits, got ", layer.activation.bits);
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
  Reader reader(document.root(), "config");
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
