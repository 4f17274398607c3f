#include "quant/training/qconfig.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>

#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

using Json = nlohmann::ordered_json;

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

Json to(const WeightConfig& w) {
  return {{"bits", w.bits},
          {"narrow", w.narrow},
          {"per_channel", w.per_channel},
          {"scheme", name_of(w.scheme, kSchemes)},
          {"estimator", name_of(w.estimator, kEstimators)}};
}

Json to(const ObserverSpec& spec) {
  Json json = {{"kind", std::string(kind(spec))}};
  const auto write = [&](const char* key, const auto& value) { json[key] = value; };
  std::visit([&](const auto& options) { options.describe(options, write); }, spec);
  return json;
}

Json to(const ActivationConfig& a) {
  return {{"bits", a.bits},
          {"signed", a.is_signed},
          {"scheme", name_of(a.scheme, kSchemes)},
          {"observer", a.observer ? to(*a.observer) : Json(nullptr)},
          {"estimator", name_of(a.estimator, kEstimators)}};
}

Json to(const LayerConfig& l) {
  return {{"quantize", l.quantize}, {"weight", to(l.weight)}, {"activation", to(l.activation)}};
}

/// Reads the members of an object, each once, and refuses what it was not asked for.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) throw QuantError("QConfig", where_, " is not an object");
  }

  const Json& member(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) throw QuantError("QConfig", where_, ".", key, " is missing");
    keys_.push_back(key);
    return *found;
  }

  template <class T>
  void read(const char* key, T& value) {
    const Json& json = member(key);
    // get_to() turns any number or truth value into any type of number, whatever is lost.
    bool fits = true;
    if constexpr (std::is_same_v<T, int>) {
      fits = json.is_number_integer() && json.get<int64_t>() == json.get<int>();
    } else if constexpr (std::is_floating_point_v<T>) {
      fits = json.is_number();
    }
    try {
      if (fits) json.get_to(value);
    } catch (const Json::exception&) {
      fits = false;
    }
    if (!fits) throw QuantError("QConfig", where_, ".", key, " has the wrong type: ", json.dump());
  }

  template <class E>
  void read(const char* key, E& value, const Names<E>& names) {
    std::string text;
    read(key, text);
    for (const auto& [entry, name] : names) {
      if (text == name) {
        value = entry;
        return;
      }
    }
    throw QuantError("QConfig", where_, ".", key, " has an unknown value: \"", text, "\"");
  }

  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) {
        throw QuantError("QConfig", where_, ".", key, " is unknown");
      }
    }
  }

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> keys_;
};

ObserverSpec observer_from(const Json& json, const std::string& where) {
  Reader reader(json, where);
  std::string kind;
  reader.read("kind", kind);
  ObserverSpec spec = observer_spec(kind);
  const auto read = [&](const char* key, auto& value) { reader.read(key, value); };
  std::visit([&](auto& options) { options.describe(options, read); }, spec);
  reader.finish();
  return spec;
}

LayerConfig layer_from(const Json& json, const std::string& where) {
  LayerConfig layer;
  Reader reader(json, where);
  reader.read("quantize", layer.quantize);
  Reader weight(reader.member("weight"), where + ".weight");
  weight.read("bits", layer.weight.bits);
  weight.read("narrow", layer.weight.narrow);
  weight.read("per_channel", layer.weight.per_channel);
  weight.read("scheme", layer.weight.scheme, kSchemes);
  weight.read("estimator", layer.weight.estimator, kEstimators);
  weight.finish();
  Reader activation(reader.member("activation"), where + ".activation");
  activation.read("bits", layer.activation.bits);
  activation.read("signed", layer.activation.is_signed);
  activation.read("scheme", layer.activation.scheme, kSchemes);
  activation.read("estimator", layer.activation.estimator, kEstimators);
  const Json& observer = activation.member("observer");
  if (!observer.is_null()) {
    layer.activation.observer = observer_from(observer, where + ".activation.observer");
  }
  activation.finish();
  reader.finish();
  return layer;
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
  std::ostringstream known;
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
  Json json = {
      {"model", to(model)},
      {"types", Json::object()},
      {"layers", Json::object()},
      {"input_range", input_range ? Json{input_range->min, input_range->max} : Json(nullptr)},
      {"output_bits", output_bits},
      {"simulation", name_of(simulation, kSimulations)}};
  for (const auto& [type, layer] : types) json["types"][type] = to(layer);
  for (const auto& [path, layer] : layers) json["layers"][path] = to(layer);
  try {
    return json.dump(2);
  } catch (const Json::exception& error) {
    throw QuantError("QConfig", "a name cannot be written as JSON: ", error.what());
  }
}

QConfig QConfig::from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw QuantError("QConfig", "the text is not JSON");
  QConfig config;
  Reader reader(json, "config");
  config.model = layer_from(reader.member("model"), "config.model");
  for (const auto& [type, layer] : reader.member("types").items()) {
    config.types[type] = layer_from(layer, "config.types." + type);
  }
  for (const auto& [path, layer] : reader.member("layers").items()) {
    config.layers[path] = layer_from(layer, "config.layers." + path);
  }
  if (!reader.member("input_range").is_null()) {
    std::vector<float> range;
    reader.read("input_range", range);
    if (range.size() != 2)
      throw QuantError("QConfig", "config.input_range has ", range.size(), " entries");
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
