#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "layers/module.hpp"
#include "quant/observers/spec.hpp"
#include "quant/prepare/fake_quantize_op.hpp"
#include "quant/prepare/phase.hpp"

namespace quantrain::quant {

/// How the gradient passes through a FakeQuantize, and where the scale comes from.
/// docs/quantization.md (4)
enum class Estimator {
  kClamped,  ///< straight through inside the representable range, 0 outside
  kPlain,    ///< straight through everywhere
  kLearned,  ///< clamped, and the scale is a parameter (LSQ)
};

struct FakeQuantizeConfig {
  QType type;
  QScheme scheme = QScheme::kAffine;
  int axis = -1;         ///< -1: per tensor; else per channel along this axis
  int64_t channels = 1;  ///< extent of x along axis; 1 if axis is -1
  CodeStorage storage = CodeStorage::kU8;
  ObserverSpec observer{};  ///< not used by kLearned
  /// The range of the whole tensor, if it is known beforehand. Scale and zero point follow from the
  /// range and the type. They never change, are not learned, and belong to the configuration, not
  /// to the state.
  std::optional<Range> range{};
  Estimator estimator = Estimator::kClamped;
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
  int32_t levels() const { return config_.type.levels(); }
  /// Lowest and highest code.
  std::pair<int32_t, int32_t> quant_range() const {
    return {config_.type.qmin(), config_.type.qmax()};
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
  std::optional<QParams> known_;  // from config_.range
  std::unique_ptr<Observer> observer_;
  std::optional<QParams> start_;  // from the first tensor that may set a learned scale
  bool anew_ = false;             // whether the current Calibration forgets earlier values
  // The observer's state when the current Calibration first observed values; empty: it did not yet.
  std::optional<std::vector<NamedState>> before_;
  std::optional<Numbers> calibrated_;  // what the current Calibration chose
  std::string why_no_params_;          // why the last Calibration chose no parameters
  Tensor scale_;                       // [channels]; trainable if learned
  IntegerBuffer zero_point_;           // [channels]
  IntegerBuffer initialized_;          // [1]: an Origin; kChosen if observed or learned
};

}  // namespace quantrain::quant
