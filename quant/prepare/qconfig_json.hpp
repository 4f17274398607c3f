#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/weight_quantizer.hpp"

// The JSON of the parts of a configuration; files of prepared networks have the same parts.
namespace quantrain::quant {

template <class E>
using Names = std::vector<std::pair<E, const char*>>;
inline const Names<QScheme> kSchemes = {{QScheme::kAffine, "affine"},
                                        {QScheme::kSymmetric, "symmetric"}};
inline const Names<Estimator> kEstimators = [] {
  Names<Estimator> names;
  for (const EstimatorKind& kind : kEstimatorKinds) names.emplace_back(kind.estimator, kind.name);
  return names;
}();
inline const Names<Simulation> kSimulations = {{Simulation::kInteger, "integer"},
                                               {Simulation::kFloat, "float"}};

template <class E>
const char* name_of(E value, const Names<E>& names) {
  for (const auto& [entry, name] : names) {
    if (entry == value) return name;
  }
  return "";
}

void write(JsonWriter& json, const WeightConfig& w);
void write(JsonWriter& json, const ObserverSpec& spec);

/// Reads an object of the configuration. Errors are QuantErrors that say where the object is.
class QConfigReader : public JsonReader {
 public:
  QConfigReader(JsonValue json, const std::string& where);

  void read(const char* key, bool& value) { value = boolean(key); }
  void read(const char* key, int& value);
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
  JsonValue object(const char* key);

 private:
  std::string where_;
};

WeightConfig weight_from(JsonValue json, const std::string& where);
ObserverSpec observer_from(JsonValue json, const std::string& where);

}  // namespace quantrain::quant
