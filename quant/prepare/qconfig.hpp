#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/weight_quantizer.hpp"

namespace quantrain::quant {

/// How the output of a layer is quantized. `bits` is kLeastBits to 16; an output with more than 8
/// bits can be simulated, but not deployed.
struct ActivationConfig {
  int bits = 8;
  bool is_signed = false;
  QScheme scheme = QScheme::kAffine;
  /// Empty: chosen by bits. From 6 bits on, the range covers what is rare: recent min-max in
  /// prepare_qat, min-max in prepare_ptq. Below 6 bits, percentile, which cuts off what is rarer
  /// than one value in a thousand of a batch. Not used for an operation with a known range, such as
  /// softmax, nor for a learned scale.
  /// docs/quantization.md (14), (26)
  std::optional<ObserverSpec> observer{};
  Estimator estimator = Estimator::kClamped;
  /// The scale is a power of two, the next one that is not smaller.   docs/quantization.md (30)
  bool power_of_two = false;
  /// If not 0: training starts with these bits, more than `bits`, and lower_bits() brings them down
  /// (quant/methods/gradual_bits.hpp).
  int first_bits = 0;

  /// unless_said: the observer to use if `observer` is empty.
  FakeQuantizeConfig fake_quantize(Simulation simulation, const ObserverSpec& unless_said) const;
  friend bool operator==(const ActivationConfig&, const ActivationConfig&) = default;
};

struct LayerConfig {
  /// If false, the layer and all operations that it runs stay in float. The layer can be trained,
  /// but convert refuses it.
  bool quantize = true;
  WeightConfig weight;
  ActivationConfig activation;

  friend bool operator==(const LayerConfig&, const LayerConfig&) = default;
};

/// How a network is quantized: settings for the whole model, for the layers of a type ("Conv2d")
/// and for named layers ("block1.conv"). The most specific entry replaces the others entirely.
/// A batch norm, ReLU or ReLU6 that is fused with the layer before it has that layer's settings. A
/// ReLU or ReLU6 is not fused if other layers read its input, too, or if its input comes from an
/// operation that keeps codes, such as a max pool. It keeps the codes of its input. If `types` or
/// `layers` has an entry for it, it has a range and bits of its own instead. An entry with
/// `quantize = false` leaves it the codes of its input, and convert accepts it.
/// prepare_qat and prepare_ptq refuse an entry if none of the layers that it applies to has an
/// operation to quantize. An entry with `quantize = false` must apply to such a layer, too.
struct QConfig {
  LayerConfig model;
  std::map<std::string, LayerConfig> types;
  std::map<std::string, LayerConfig> layers;
  /// Real values of the input's lowest and highest code. Needed if the example that is passed to
  /// prepare_qat or prepare_ptq holds plain floats. An example with codes carries its own range:
  /// leave this empty or set the same range. A range far from 0 is refused (integer::input_params).
  /// docs/quantization.md (12)
  std::optional<Range> input_range{};
  /// An output layer gives an output of the network, perhaps reshaped. No other layer reads its
  /// result, except a softmax that also gives an output.
  /// With 32, an output layer with weights gives its int32 accumulators if no activation or softmax
  /// follows. Each of its channels has its own scale, unless its weights are quantized per tensor
  /// (WeightConfig::per_channel = false for this layer). IntegerModel::classify compares both
  /// kinds. All other output layers, and a layer that only such a softmax reads, give codes of 8
  /// bits, which share one scale: outputs of different size need 32. With 8, every output layer
  /// gives codes of 8 bits.
  int output_bits = 32;
  Simulation simulation = Simulation::kInteger;

  /// Weights are quantized per channel, to the narrow range [-qmax, qmax]. Hidden activations are
  /// unsigned and affine.
  static QConfig bits(int weight_bits, int activation_bits);
  static QConfig int8() { return bits(8, 8); }
  static QConfig int4() { return bits(4, 4); }
  static QConfig int2() { return bits(2, 2); }

  /// A predefined configuration, such as "w4a8"; names() lists them.
  /// Throws: QuantError listing the predefined names if this one is not among them.
  static QConfig named(std::string_view name);
  static std::vector<std::string> names();

  /// The configuration of one layer.
  const LayerConfig& of(std::string_view type, const std::string& path) const&;
  LayerConfig of(std::string_view type, const std::string& path) const&& { return of(type, path); }

  /// The configuration as JSON. from_json reads at most 4 MiB, and throws QuantError naming the key
  /// that is missing, unknown, duplicate or out of range.
  std::string to_json() const;
  static QConfig from_json(std::string_view text);

  friend bool operator==(const QConfig&, const QConfig&) = default;
};

/// Throws: QuantError naming the setting that is out of range.
void validate(const QConfig& config);

}  // namespace quantrain::quant
