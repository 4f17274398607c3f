#include "quant/prepare/qconfig_json.hpp"

#include <limits>

namespace quantrain::quant {

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
  weight.finish();
  return config;
}

ObserverSpec observer_from(JsonValue json, const std::string& where) {
  QConfigReader reader(json, where);
  ObserverSpec spec = observer_spec(reader.text("kind"));
  const auto read = [&](const char* key, auto& value) { reader.read(key, value); };
  std::visit([&](auto& options) { options.describe(options, read); }, spec);
  reader.finish();
  return spec;
}

}  // namespace quantrain::quant
