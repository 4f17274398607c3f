#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/named_state.hpp"

namespace quantrain::quant {

/// The quantization phase of a network or of one of its slots. Saved with the state, except for
/// calibrating, which ends with its scope.
enum class Phase {
  kCalibrating,  ///< values pass in float and observers see them; only within a Calibration
  kTraining,     ///< quantized; in training mode ranges move and learned scales are trained
  kFrozen,       ///< quantized; ranges and learned scales do not change
};

/// "calibrating", "training", "frozen".
std::string_view to_string(Phase phase);

/// How a simulated network runs its operations.
enum class Simulation {
  kInteger,  ///< the integer engine: equal to the deployed network
  kFloat,    ///< floats that were quantized and dequantized, as in other frameworks
};

/// What the numbers of a slot's state mean, as constants. So a state of another type, or of a scale
/// that is learned where this one is not, cannot be loaded.
std::vector<NamedState> type_constants(const QType& type, bool learned);
/// The same for scales that are powers of two; states of others lack it.
NamedState power_of_two_constant();
/// Zero points [channels] of this type, at first 0.
IntegerBuffer zero_points(int64_t channels, const QType& type);

/// Checks that parameters given to a slot are valid, and have the slot's type, axis and number of
/// channels.
/// Throws: QuantError naming `where`.
void check_given(
    const QParams& params, const QType& type, int axis, int64_t channels, std::string_view where);

/// Base of the modules that prepare_qat and prepare_ptq plug into slots. What they compute depends
/// on a phase, which is saved, and on the open scope (Calibration, FloatMode or DeployedMode of
/// scopes.hpp), which is not saved.
class Phased {
 public:
  virtual ~Phased() = default;
  Phased(Phased&&) = default;
  Phased& operator=(Phased&&) = default;

  /// kCalibrating within a Calibration, kFrozen in a DeployedMode, else the saved phase. The state
  /// stores 1 for training and 2 for frozen.
  Phase phase() const;
  /// Throws: QuantError for kCalibrating, which only a Calibration sets.
  void set_phase(Phase phase);
  /// Always kInteger in a DeployedMode.
  Simulation simulation() const;
  void set_simulation(Simulation simulation) { simulation_ = simulation; }

  /// Path of the layer that the slot belongs to, for messages outside of a pass; empty if none.
  const std::string& layer() const& { return layer_; }
  std::string layer() const&& { return layer_; }
  void set_layer(std::string path) { layer_ = std::move(path); }

 protected:
  explicit Phased(Simulation simulation = Simulation::kInteger);

  /// For messages: during a pass, the path of the running layer; otherwise layer(), or `type` if
  /// layer() is empty.
  std::string place(std::string_view type) const;
  /// Whether values pass unchanged, because a Calibration or FloatMode is open.
  bool in_float() const { return scope_ == ScopeKind::kCalibration || scope_ == ScopeKind::kFloat; }
  /// The saved phase [1], which the module registers as a buffer.
  const IntegerBuffer& saved_phase() const { return phase_; }
  /// Whether the saved phase is kFrozen, whatever scope is open.
  bool is_saved_frozen() const { return stored() == Phase::kFrozen; }
  /// Called when a Calibration begins. anew: CalibrationOptions::anew.
  virtual void begin_calibration(bool /*anew*/) noexcept {}
  /// Called before a Calibration ends, if the caller asks for errors: throws if the values that
  /// were observed give no valid range. Must not change what a pass computes, because another slot
  /// may throw.
  virtual void choose_calibrated() {}
  /// Called when a Calibration ends; complete is false if an exception ended it.
  virtual void end_calibration(bool /*complete*/) noexcept {}

 private:
  friend class SlotScope;
  enum class ScopeKind { kNone, kFloat, kCalibration, kDeployed };

  Phase stored() const { return static_cast<Phase>(phase_.item()); }

  std::string layer_;
  IntegerBuffer phase_;
  Simulation simulation_;
  ScopeKind scope_ = ScopeKind::kNone;
};

}  // namespace quantrain::quant
