#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "layers/module.hpp"
#include "quant/observers/spec.hpp"
#include "quant/prepare/fake_quantize_op.hpp"
#include "quant/prepare/methods/estimator.hpp"
#include "quant/prepare/methods/fewer_bits.hpp"
#include "quant/prepare/phase.hpp"

namespace quantrain::quant {

struct FakeQuantizeConfig {
  QType type;
  QScheme scheme = QScheme::kAffine;
  int axis = -1;         ///< -1: per tensor; else per channel along this axis
  int64_t channels = 1;  ///< extent of x along axis; 1 if axis is -1
  CodeStorage storage = CodeStorage::kU8;
  /// Estimators that learn the range start with what the observer chooses for the first tensor;
  /// kLearned does not use it.
  ObserverSpec observer{};
  /// The range of the whole tensor, if it is known beforehand. Scale and zero point follow from the
  /// range and the type. They never change, are not learned, and belong to the configuration, not
  /// to the state.
  std::optional<Range> range{};
  Estimator estimator = Estimator::kClamped;
  /// The scale is a power of two, the next one that is not smaller.   docs/quantization.md (30)
  bool power_of_two = false;
  /// If not 0: training starts with these bits, more than `bits`, and lower_bits() brings them down
  /// (quant/methods/gradual_bits.hpp).
  int first_bits = 0;
  Simulation simulation = Simulation::kInteger;

  /// For activations: unsigned affine, 8 or 4 bits.
  static FakeQuantizeConfig q8();
  static FakeQuantizeConfig q4();
  /// For weights: signed, symmetric, narrow range; int2 is ternary.
  static FakeQuantizeConfig int8();
  static FakeQuantizeConfig int4();
  static FakeQuantizeConfig int2();
};

/// Fake quantization with an observer. prepare_qat and prepare_ptq plug it into layers; it can also
/// be used on its own. In Phase::kTraining, a forward pass in training mode first updates the
/// parameters; in evaluation mode it does not. In Phase::kFrozen nothing changes, not even a
/// learned scale. Within a Calibration, x passes unchanged and the observer sees it. In a DryRun
/// the state does not change, and a FakeQuantize without parameters uses the range of x for this
/// pass.
/// Shapes, gradient: as fake_quantize().
/// Throws: QuantError if there are no parameters yet and the pass does not choose them; DataError
/// for NaN or infinite input.
class FakeQuantize : public Module, public Phased {
 public:
  explicit FakeQuantize(FakeQuantizeConfig config = {});
  /// Uses your own observer in place of config.observer.
  /// Throws: QuantError if config is not valid, or the observer is null, or its axis or number of
  /// channels is not that of config.
  FakeQuantize(FakeQuantizeConfig config, std::unique_ptr<Observer> observer);
  /// Uses the given parameters, which never change.
  /// Throws: QuantError if they are not valid.
  explicit FakeQuantize(const QParams& params, Estimator estimator = Estimator::kClamped);

  std::string_view type() const override { return "FakeQuantize"; }

  /// Observes x, as a training pass does, and chooses the parameters from all values seen so far.
  /// quant::calibrate(net, batches) instead begins anew.
  /// Only the first x sets a learned scale.
  /// Throws: DataError if x is empty or has a NaN or an infinity; ShapeError if its number of
  /// channels is not the configured one; QuantError if the parameters were given or are frozen. On
  /// an error, nothing changes.
  void calibrate(const Tensor& x);
  /// Whether there are parameters.
  bool is_initialized() const { return origin() != kNone; }
  /// Whether the parameters never change. True if the constructor or update_params() set them (the
  /// saved state records this), or if they follow from config().range.
  bool is_given() const { return origin() == kGiven; }
  /// The current parameters. Throws: QuantError if there are none.
  QParams params() const;
  /// Sets the parameters; they never change again.
  /// Throws: QuantError if params are not valid or have another type, axis or number of channels,
  /// or if config().range determines the parameters.
  void update_params(const QParams& params);

  /// Whether forward(x) now takes no more than the range of x and the clamped straight-through
  /// estimator. An operation whose result is x may then quantize it in its own pass, with
  /// params_for().
  bool takes_range() const;
  /// The part of forward(x) that finds the parameters, given the range of x and its number of
  /// samples. In training, the range moves first.
  /// Throws: as forward().
  QParams params_for(const Range& range, int64_t samples);

  const FakeQuantizeConfig& config() const& { return config_; }
  FakeQuantizeConfig config() const&& { return config_; }
  /// The kind of the observer: "min_max", "histogram".
  std::string_view observer_kind() const { return observer_->kind(); }
  /// The type of the codes now: config().type unless there are first_bits.
  QType code_type() const {
    return bits_ ? QType{bits_->bits(), config_.type.is_signed, config_.type.narrow} : config_.type;
  }
  /// Whether there are first_bits that lower_bits() lowers. Given parameters and those of a known
  /// range keep their bits.
  bool lowers_bits() const { return bits_ && !is_given(); }
  /// Quantizes with first_bits - by bits from now on, but with at least config().type.bits, and
  /// never with more than before.   docs/quantization.md (30)
  /// Throws: QuantError if the bits would fall and the slot is frozen; DataError if a scale is not
  /// finite. On an error, nothing changes.
  void lower_bits(int64_t by);
  /// Computes what lower_bits(by) sets. The result sets it, and cannot fail, so that all slots of a
  /// network change or none. Call it before anything else changes.
  /// Throws: as lower_bits().
  std::function<void()> prepared_lower_bits(int64_t by);
  int32_t levels() const { return code_type().levels(); }
  /// Lowest and highest code.
  std::pair<int32_t, int32_t> quant_range() const {
    return {code_type().qmin(), code_type().qmax()};
  }
  /// Real values of the lowest and highest code of a channel.
  Range float_range(size_t channel = 0) const { return params().float_range(channel); }
  /// Includes what is learned, such as a scale, which a pass initializes and keeps positive.
  std::vector<NamedState> pass_state() const override;
  /// Observers join what the shards saw, and give the parameters. A learned scale is initialized by
  /// the first shard.   docs/quantization.md (14)
  void join_shards(const ShardStates& shards) override;

  /// Mean of (fake_quantize(x) - x)^2 with the current parameters.
  double quantization_noise(const Tensor& x) const;

 protected:
  Tensor forward(const Tensor& x) override;
  void begin_calibration(bool anew) noexcept override { anew_ = anew; }
  void choose_calibrated() override;
  void end_calibration(bool complete) noexcept override;

 private:
  enum Origin : int64_t { kNone, kChosen, kGiven };  // of the parameters
  int64_t origin() const { return known_ ? kGiven : initialized_.item(); }

  bool moves() const;
  void check_input(const Tensor& x) const;
  void observe(const Tensor& x);
  void observe_calibration(const Tensor& x);
  /// Scales and zero points, ready to be stored.
  struct Numbers {
    explicit Numbers(const QParams& params)
        : scale(params.scale), zero_point(params.zero_point.begin(), params.zero_point.end()) {}
    std::vector<float> scale;
    std::vector<int64_t> zero_point;
  };
  /// A scale and a zero point as they are used.
  ScaleZero finished(const ScaleZero& chosen) const;
  /// What the state says about a channel, once there are parameters: not a power of two yet.
  ScaleZero stored(size_t c) const;
  /// The parameters of a channel.
  ScaleZero channel(size_t c) const;
  /// The values of the learned parameters of a channel.
  LearnedRange::Values values_of(size_t c) const;
  /// Moves learned parameters into their domain. Writes only if a value changes.
  void project();
  Learning learning(const QParams& params) const;
  std::optional<Numbers> chosen() const;
  void choose();
  /// As calibrate(), for a training pass: on an error, the observer has seen x.
  void move(const Tensor& x);
  std::vector<NamedState> observed() const;  ///< copies of the observer's state
  void restore(const std::vector<NamedState>& observed);
  QParams start(const Tensor& x) const;
  void store(const Numbers& numbers, Origin origin);
  FakeQuantizeOptions options_for(const Tensor& x) const;

  FakeQuantizeConfig config_;
  const LearnedRange* learned_ = nullptr;  // null if the range is not learned
  std::optional<FewerBits> bits_;
  std::optional<QParams> known_;  // from config_.range
  std::unique_ptr<Observer> observer_;
  std::optional<QParams> start_;  // from the first tensor that may set a learned scale
  bool anew_ = false;             // whether the current Calibration forgets earlier values
  // The observer's state when the current Calibration first observed values; empty: it did not yet.
  std::optional<std::vector<NamedState>> before_;
  std::optional<Numbers> calibrated_;  // what the current Calibration chose
  std::string why_no_params_;          // why the last Calibration chose no parameters
  // [channels] each: the learned parameters. If the range is not learned, or the parameters were
  // given, the first one is the scale.
  std::vector<Tensor> values_;
  IntegerBuffer zero_point_;   // [channels]
  IntegerBuffer initialized_;  // [1]: an Origin; kChosen if observed or learned
};

}  // namespace quantrain::quant
