#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "quant/prepare/batch_norm_folding.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/methods/fewer_bits.hpp"
#include "quant/prepare/methods/weight_function.hpp"

namespace quantrain::quant {

/// How the weights of a layer are quantized.
struct WeightConfig {
  int bits = 8;
  bool narrow = true;
  bool per_channel = true;
  QScheme scheme = QScheme::kSymmetric;  ///< affine exists in simulation only
  Estimator estimator = Estimator::kClamped;
  /// What is quantized in place of the weight, such as Ternary{}; empty: the weight itself.
  /// Calibration and FloatMode compute with it, too.   docs/quantization.md (28)
  std::optional<WeightFunction> function{};
  /// Scales are powers of two, the next ones that are not smaller.   docs/quantization.md (30)
  bool power_of_two = false;
  /// If not 0: training starts with these bits, more than `bits`, and lower_bits() brings them down
  /// (quant/methods/gradual_bits.hpp).
  int first_bits = 0;

  friend bool operator==(const WeightConfig&, const WeightConfig&) = default;
};

/// Which setting is out of range or does not fit another; empty if none.
std::string fault(const WeightConfig& config);

/// Weight slot: applies a weight function if there is one, folds a batch norm if there is one, then
/// fake-quantizes. A scale that is neither learned nor given comes from the current weights in
/// every phase, never from an average. Learned scales are fixed in Phase::kFrozen, given scales
/// always.   docs/quantization.md (5), (15)
class WeightQuantizer : public WeightSlot, public Phased {
 public:
  /// own: the layer's weight [O, ...] and bias. The weight, with the batch norm folded in, gives
  /// the number of channels and the initial value of a learned scale.
  WeightQuantizer(const WeightConfig& config, const Weights& own, std::shared_ptr<Folding> folding);
  std::string_view type() const override { return "WeightQuantizer"; }

  /// Returns the own weight, after its function, and the own bias while a Calibration or FloatMode
  /// is open. Otherwise, the result's bias is undefined while the folded batch norm uses batch
  /// statistics, because the batch norm then adds the bias.
  Weights apply(const Weights& own, const Tensor& x) override;

  /// Includes a learned scale, which a pass keeps positive.
  std::vector<NamedState> pass_state() const override;

  /// Sets the parameters of the weights, with any batch norm folded in. The parameters do not
  /// change while the weights train, and are saved with the state. Use this for weights that were
  /// quantized elsewhere.
  /// Throws: QuantError if the parameters are not valid, or have another type, axis or number of
  /// channels, or if a symmetric scheme gets a zero point other than 0.
  void set_params(const QParams& params);
  /// The parameters of the current weights, with any batch norm folded in. A pass may use a larger
  /// scale, so that the bias fits; this depends on the input's scale.   docs/quantization.md (5)
  QParams params() const;
  bool is_given() const { return given_.item() == 1; }
  /// The bits now: config().bits unless there are first_bits.
  int bits() const { return bits_ ? bits_->bits() : config_.bits; }
  /// Whether there are first_bits that lower_bits() lowers. Given parameters keep their bits.
  bool lowers_bits() const { return bits_ && !is_given(); }
  /// Quantizes with first_bits - by bits from now on, but with at least config().bits, and never
  /// with more than before.   docs/quantization.md (30)
  /// Throws: QuantError, and changes nothing, if the bits would fall and the slot is frozen.
  void lower_bits(int64_t by);
  /// The result does what lower_bits(by) does, and cannot fail.   FakeQuantize::prepared_lower_bits
  /// Throws: as lower_bits().
  std::function<void()> prepared_lower_bits(int64_t by);
  /// The layer's own weight and bias.
  const Weights& own() const& { return own_; }
  Weights own() const&& { return own_; }
  const WeightConfig& config() const& { return config_; }
  WeightConfig config() const&& { return config_; }
  const std::shared_ptr<Folding>& folding() const& { return folding_; }
  std::shared_ptr<Folding> folding() const&& { return folding_; }

 private:
  void start_scale(const Weights& own);
  /// A scale and a zero point as they are used.
  ScaleZero finished(const ScaleZero& chosen) const;
  /// The weight after the function.
  Tensor computed_weight(const Tensor& own) const;
  QParams empty_params() const;
  /// Chooses the parameters of a channel from the range of its weights, with any batch norm folded
  /// in. bias: the layer's bias, with any batch norm folded in, or undefined; must outlive the
  /// result. x: the layer's input, or undefined.
  ChooseParams chooser(const Tensor& bias, const Tensor& x) const;
  /// factor: that of the folded batch norm, or undefined.
  QParams params_for(const Tensor& weight, const Tensor& factor, const ChooseParams& choose) const;
  QParams given_params() const;

  WeightConfig config_;
  Weights own_;  // those of the layer
  std::shared_ptr<Folding> folding_;
  Tensor scale_;              // [O] or [1]; learned or given
  IntegerBuffer zero_point_;  // [O] or [1]; given
  std::optional<FewerBits> bits_;
  IntegerBuffer given_;  // [1]: 1 if the parameters were given, else 0
};

}  // namespace quantrain::quant
