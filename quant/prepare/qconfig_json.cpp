#include "quant/prepare/qconfig_json.hpp"

#include <limits>

#include "quant/observers/kinds.hpp"

namespace quantrain::quant {
namespace {

/// A variant of options: the name of its kind, and its options.
template <class Spec>
void write_kind(JsonWriter& json, const Spec& spec) {
  const auto member = [&](const char* key, const auto& value) { json.member(key, value); };
  json.object([&] {
    json.member("kind", kind_of(spec));
    std::visit([&](const auto& options) { options.describe(options, member); }, spec);
  });
}

template <class Spec>
Spec read_kind(JsonValue json, const std::string& where, Spec (*find)(std::string_view kind)) {
  QConfigReader reader(json, where);
  Spec spec = find(reader.text("kind"));
  const auto read = [&](const char* key, auto& value) { reader.read(key, value); };
  std::visit([&](auto& options) { options.describe(options, read); }, spec);
  reader.finish();
  return spec;
}

}  // namespace

void write(JsonWriter& json, const WeightConfig& w) {
  json.object([&] {
    json.member("bits", w.bits);
    json.member("narrow", w.narrow);
    json.member("per_channel", w.per_channel);
    json.member("scheme", name_of(w.scheme, kSchemes));
    json.member("estimator", name_of(w.estimator, kEstimators));
    if (w.power_of_two) json.member("power_of_two", true);
    if (w.first_bits != 0) json.member("first_bits", w.first_bits);
    if (w.function) json.member("function", [&] { write_kind(json, *w.function); });
  });
}

void write(JsonWriter& json, const ObserverSpec& spec) { write_kind(json, spec); }

QConfigReader::QConfigReader(JsonValue json, const std::string& where)
    : JsonReader(json,
                 [where](const std::string& text) {
                   return std::make_exception_ptr(QuantError("QConfig", where, ": ", text));
                 }),
      where_(where) {}

void QConfigReader::read(const char* key, int& value) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  value = static_cast<int>(integer(key, -kMost, kMost));
}

JsonValue QConfigReader::object(const char* key) {
  const JsonValue json = at(key);
  if (!json.is_object())
    throw QuantError("QConfig", where_, ".", key, " is ", json, ", expected an object");
  return json;
}

WeightConfig weight_from(JsonValue json, const std::string& where) {
  WeightConfig config;
  QConfigReader weight(json, where);
  weight.read("bits", config.bits);
  weight.read("narrow", config.narrow);
  weight.read("per_channel", config.per_channel);
  weight.read("scheme", config.scheme, kSchemes);
  weight.read("estimator", config.estimator, kEstimators);
  if (weight.has("power_of_two")) weight.read("power_of_two", config.power_of_two);
  if (weight.has("first_bits")) weight.read("first_bits", config.first_bits);
  if (weight.has("function")) {
    config.function =
        read_kind<WeightFunction>(weight.at("function"), where + ".function", weight_function);
  }
  weight.finish();
  return config;
}

ObserverSpec observer_from(JsonValue json, const std::string& where) {
  return read_kind<ObserverSpec>(json, where, observer_spec);
}

}  // namespace quantrain::quant
