#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "framework/data/loader.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "layers/layers.hpp"
#include "quant/analysis/diagnose.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

// Small networks and data for the tests of the doctor.
namespace quantrain::quant::test {

/// The values of a parameter, given by its path.
inline float* values_of(Module& net, const std::string& path) {
  for (NamedState& entry : net.named_parameters()) {
    if (entry.name == path) return entry.tensor.mutable_data();
  }
  FAIL("no parameter " << path);
  return nullptr;
}

/// Fills a parameter with normal values times `scale`.
inline void fill(Module& net, const std::string& path, uint64_t seed, float scale) {
  for (NamedState& entry : net.named_parameters()) {
    if (entry.name != path) continue;
    Random random(seed);
    float* const w = entry.tensor.mutable_data();
    for (int64_t i = 0; i < entry.tensor.elements(); ++i) w[i] = scale * random.normal();
  }
}

inline std::vector<float> normals(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = random.normal();
  return values;
}

/// Samples [n, features] as codes of a range, without targets.
inline DataLoader coded(int64_t features, const std::vector<float>& values, Range range) {
  const auto n = static_cast<int64_t>(values.size()) / features;
  return DataLoader{
      TensorDataset(SampleArray::encoded({n, features}, values, range, {}, Outside::kSaturate),
                    std::monostate{}),
      {.batch = 32}};
}

/// Linear - ReLU - Linear with normal weights and small biases.
inline Sequential two_layers(int64_t in, int64_t hidden, int64_t out) {
  Sequential net{Linear{in, hidden}, ReLU{}, Linear{hidden, out}};
  fill(net, "0.weight", 1, 1.0f / std::sqrt(static_cast<float>(in)));
  fill(net, "0.bias", 2, 0.1f);
  fill(net, "2.weight", 3, 1.0f / std::sqrt(static_cast<float>(hidden)));
  fill(net, "2.bias", 4, 0.1f);
  return net;
}

/// Prepares a network for quantization without training, and calibrates it.
inline void prepare_and_calibrate(Module& net, const DataLoader& data, const QConfig& config) {
  prepare_ptq(net, (*data.begin()).input, config);
  calibrate(net, data);
}

}  // namespace quantrain::quant::test
