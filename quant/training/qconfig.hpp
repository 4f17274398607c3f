#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/training/fake_quantize.hpp"
#include "quant/training/weight_quantizer.hpp"

namespace quantrain::quant {

/// How the output of a layer is quantized; bits 2 to 16, above 8 in simulation only.
struct ActivationConfig {
  int bits = 8;
  bool is_signed = false;
  QScheme scheme = QScheme::kAffine;
  /// Empty: the moving average in prepare_qat; in prepare_ptq min-max, below 8 bits percentile.
  /// docs/quantization.md (14)
  std::optional<ObserverSpec> observer{};
  Estimator estimator = Estimator::kClamped;

  /// unless_said: the observer where there is none.
  FakeQuantizeConfig fake_quantize(Simulation simulation, const ObserverSpec& unless_said) const;
  friend bool operator==(const ActivationConfig&, const ActivationConfig&) = default;
};

struct LayerConfig {
  bool quantize = true;  ///< false leaves the layer in float: it trains, convert refuses it
  WeightConfig weight;
  ActivationConfig activation;

  friend bool operator==(const LayerConfig&, const LayerConfig&) = default;
};

/// How a network is quantized: for the whole model, else for the layers of a type ("Conv2d"), else
/// for a named layer ("block1.conv"); the most particular one counts, whole. Types and names that
/// the network does not have among its quantized layers are refused when it is prepared.
struct QConfig {
  LayerConfig model;
  std::map<std::string, LayerConfig> types;
  std::map<std::string, LayerConfig> layers;
  /// Real values of the lowest and highest code of the input, for an example of floats. A batch of
  /// a data set carries its own: then there is none, or the same.   docs/quantization.md (12)
  std::optional<Range> input_range{};
  /// 32: the output layer keeps its int32 accumulators at one scale; 8: its outputs are quantized
  /// like any other.
  int output_bits = 32;
  Simulation simulation = Simulation::kInteger;

  /// Weights and hidden activations of so many bits; per-channel narrow weights, unsigned affine
  /// activations.
  static QConfig bits(int weight_bits, int activation_bits);
  static QConfig int8() { return bits(8, 8); }
  static QConfig int4() { return bits(4, 4); }
  static QConfig int2() { return bits(2, 2); }

  /// A configuration by name.
  /// Throws: QuantError listing the registered ones if there is none of this name.
  static QConfig named(std::string_view name);
  static std::vector<std::string> names();

  /// What holds for one layer.
  const LayerConfig& of(std::string_view type, const std::string& path) const&;
  LayerConfig of(std::string_view type, const std::string& path) const&& { return of(type, path); }

  /// JSON, of 4 MiB at most. from_json throws: QuantError naming the key for what is missing,
  /// unknown, there twice or out of range.
  std::string to_json() const;
  static QConfig from_json(std::string_view text);

  friend bool operator==(const QConfig&, const QConfig&) = default;
};

/// Throws: QuantError naming what is out of range.
void validate(const QConfig& config);

}  // namespace quantrain::quant
