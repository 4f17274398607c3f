#pragma once

#include <memory>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "layers/module.hpp"
#include "quant/observers/spec.hpp"
#include "quant/training/fake_quantize_op.hpp"

namespace quantrain::quant {

/// How the gradient passes a FakeQuantize, and where its scale comes from.   docs/quantization.md
/// (4)
enum class Estimator {
  kClamped,  ///< straight through inside the representable range, 0 outside
  kPlain,    ///< straight through everywhere
  kLearned,  ///< clamped, and the scale is a parameter (LSQ)
};

/// What runs the products of a simulated network.
enum class Simulation {
  kInteger,  ///< the integer engine: equal to the deployed network
  kFloat,    ///< floats that were quantized and dequantized, as other frameworks do
};

struct FakeQuantizeConfig {
  QType type;
  QScheme scheme = QScheme::kAffine;
  int axis = -1;         ///< per tensor, or per channel along this axis
  int64_t channels = 1;  ///< extent of x along axis; 1 per tensor
  CodeStorage storage = CodeStorage::kU8;
  ObserverSpec observer{};  ///< not used by kLearned
  Estimator estimator = Estimator::kClamped;
  Simulation simulation = Simulation::kInteger;

  /// Unsigned affine, 8 or 4 bits: activations.
  static FakeQuantizeConfig q8();
  static FakeQuantizeConfig q4();
  /// Signed symmetric narrow range: weights; int2 is ternary.
  static FakeQuantizeConfig int8();
  static FakeQuantizeConfig int4();
  static FakeQuantizeConfig int2();
};

/// Fake quantization with an observer: of use on its own, and what prepare_qat and prepare_ptq plug
/// into layers. Two switches, both on at first: the observer, which moves the parameters in
/// training mode (and in evaluation mode while set_observing_in_eval, which is how PTQ calibrates),
/// and the fake quantization; without it x passes as it is. The first forward with the observer on
/// calibrates in any mode. With the observer off the last parameters stay. In a DryRun nothing is
/// kept; one without parameters uses the range of the tensor at hand. Shapes, gradient: as
/// fake_quantize().
/// Throws: QuantError if there are no parameters yet and the observer is off; DataError for NaN or
/// infinite input.
class FakeQuantize : public Module {
 public:
  explicit FakeQuantize(FakeQuantizeConfig config = {});
  /// With an observer of one's own in place of config.observer.
  /// Throws: QuantError if it is null, or of another axis or number of channels.
  FakeQuantize(FakeQuantizeConfig config, std::unique_ptr<Observer> observer);
  /// Given parameters, which stay: it has no observer, and enable_observer() turns none on.
  /// Throws: QuantError if they are not valid.
  explicit FakeQuantize(const QParams& params, Estimator estimator = Estimator::kClamped);

  std::string_view type() const override { return "FakeQuantize"; }

  void enable_observer(bool on) { observer_on_ = on && observer_ != nullptr; }
  void enable_fake_quantize(bool on) { fake_quantize_on_ = on; }
  void set_observing_in_eval(bool on) { observing_in_eval_ = on; }
  void set_simulation(Simulation simulation) { config_.simulation = simulation; }
  bool observer_enabled() const { return observer_on_; }
  bool fake_quantize_enabled() const { return fake_quantize_on_; }
  bool observing_in_eval() const { return observing_in_eval_; }

  /// Observes x, as a forward pass with the observer on does, and takes the parameters from what
  /// was seen so far.
  /// Throws: DataError if x is empty or has a NaN or an infinity; ShapeError if it has another
  /// number of channels than the configuration says; QuantError if the parameters were given to the
  /// constructor. Nothing has changed then.
  void calibrate(const Tensor& x);
  bool is_initialized() const { return initialized_.data()[0] != 0.0f; }
  /// Throws: QuantError if not initialized.
  QParams params() const;
  /// Sets the parameters and turns the observer off.
  /// Throws: QuantError if they are not valid, or are not of this type and number of channels.
  void update_params(const QParams& params);

  const FakeQuantizeConfig& config() const { return config_; }
  int32_t levels() const { return config_.type.levels(); }
  /// Lowest and highest code.
  std::pair<int32_t, int32_t> quant_range() const {
    return {config_.type.qmin(), config_.type.qmax()};
  }
  /// Real values of the lowest and highest code of a channel.
  Range float_range(size_t channel = 0) const { return params().float_range(channel); }
  /// Mean of (fake_quantize(x) - x)^2 at the present parameters.
  double quantization_noise(const Tensor& x) const;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  void check_input(const Tensor& x) const;
  QParams start(const Tensor& x) const;
  void store(const QParams& params);
  FakeQuantizeOptions options_for(const Tensor& x) const;

  FakeQuantizeConfig config_;
  std::unique_ptr<Observer> observer_;  // null: the parameters were given
  bool observer_on_ = true;
  bool fake_quantize_on_ = true;
  bool observing_in_eval_ = false;
  Tensor scale_;        // [channels]; a parameter if learned
  Tensor zero_point_;   // [channels]
  Tensor initialized_;  // [1]: 0 or 1
};

}  // namespace quantrain::quant
