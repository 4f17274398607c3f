#pragma once

#include <string_view>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/scope_stack.hpp"
#include "framework/data/batch.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/module.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/input_quantize.hpp"
#include "quant/prepare/prepared_form.hpp"
#include "quant/prepare/weight_quantizer.hpp"

// Phases and scopes of a whole network: they apply to all modules that prepare_ptq and prepare_qat
// plugged into it.
namespace quantrain::quant {

/// The modules in a network's slots, and FakeQuantize modules that the network uses as layers. All
/// lists have the order of the network's modules.
struct Plugged {
  std::vector<Phased*> all;
  std::vector<InputQuantize*> inputs;
  std::vector<FakeQuantize*> activations;
  std::vector<WeightQuantizer*> weights;
  std::vector<PreparedBatchNorm*> batch_norms;

  explicit Plugged(Module& net);
  bool empty() const { return all.empty() && batch_norms.empty(); }
};

/// Sets Phase::kTraining or kFrozen for every slot below the module. In both phases, quantization
/// parameters that the caller gave stay as they are.   docs/quantization.md (12)
/// Throws: QuantError for kCalibrating; GraphError if the module is a whole network that is not
/// prepared. The next four functions throw that, too.
void set_phase(Module& net, Phase phase);
/// Sets whether batch norms are frozen. A frozen batch norm uses no batch statistics in
/// training, so it computes the same as in the deployed network. Saved with the state.
void freeze_batch_norms(Module& net, bool frozen = true);
/// Sets Phase::kFrozen and freezes batch norms: the last stage of QAT, in which only weights
/// change. A network from prepare_ptq is frozen from the start.
void freeze(Module& net);
/// Selects the integer engine or floats for the simulation. Not saved with the state.
void set_simulation(Module& net, Simulation simulation);
/// Sets which batches of floats the network's inputs refuse because values saturate. By default,
/// those of which more than half of the values do, or nearly all of a column. Not saved with the
/// state.
void set_outside(Module& net, Outside outside);

/// weight_quantizer() returns the module in the weight slot of the layer at this path, and
/// output_quantizer() the module in its output slot. prepare_ptq or prepare_qat plugged them in.
/// Throws: GraphError if there is no such layer, or no such module in the slot.
WeightQuantizer& weight_quantizer(Module& net, std::string_view path);
FakeQuantize& output_quantizer(Module& net, std::string_view path);

/// Base of the scopes below. The constructor sets the scope of every slot, and the destructor
/// restores the previous one; scopes may end in any order. The network must outlive this object and
/// keep its slots.
class SlotScope {
 public:
  SlotScope(const SlotScope&) = delete;
  SlotScope& operator=(const SlotScope&) = delete;

 protected:
  using Kind = Phased::ScopeKind;
  /// anew: for a Calibration, see CalibrationOptions.
  SlotScope(Module& net, Kind kind, bool anew = true);
  /// Gives some of the slots another scope, which the destructor ends, too.
  static void set(const std::vector<Phased*>& slots, Kind kind);
  ~SlotScope();
  /// Phased::choose_calibrated() of every slot whose outermost Calibration this is.
  void choose_calibrated() const;

 private:
  int exceptions_;  // in flight when the scope began
  ScopeStack<Phased*, Kind, SlotScope> before_;
};

/// While it lives, the network computes in float, as if it were not prepared; but weights pass
/// their weight functions.
class FloatMode : SlotScope {
 public:
  [[nodiscard]] explicit FloatMode(Module& net) : SlotScope(net, Kind::kFloat) {}
};

/// While it lives, the network computes what its deployed form computes: in evaluation mode, with
/// the integer engine, and without updating any state.
class DeployedMode : SlotScope {
 public:
  [[nodiscard]] explicit DeployedMode(Module& net)
      : SlotScope(net, Kind::kDeployed), evaluation_(net) {}

 private:
  EvaluationMode evaluation_;
};

/// While it lives, only these slots of the network quantize, as in a DeployedMode. All others
/// compute in float, so the result shows what the quantization of these slots alone costs.
class PartlyDeployedMode : SlotScope {
 public:
  [[nodiscard]] PartlyDeployedMode(Module& net, const std::vector<Phased*>& deployed)
      : SlotScope(net, Kind::kFloat), evaluation_(net) {
    set(deployed, Kind::kDeployed);
  }

 private:
  EvaluationMode evaluation_;
};

/// While it lives, the network's inputs refuse no values: those out of range saturate.
class SaturatingInputs {
 public:
  [[nodiscard]] explicit SaturatingInputs(Module& net);
  ~SaturatingInputs();
  SaturatingInputs(const SaturatingInputs&) = delete;
  SaturatingInputs& operator=(const SaturatingInputs&) = delete;

 private:
  std::vector<std::pair<InputQuantize*, Outside>> before_;
};

struct CalibrationOptions {
  /// Whether ranges come from the values of this calibration alone. If false, all values that the
  /// observers saw before count, too: those of training and of earlier calibrations. A learned
  /// scale stays as it is once it was set.
  bool anew = true;
};

/// While it lives, the network computes in float, in evaluation mode and without gradients, and its
/// observers see the values. When it ends, the ranges are chosen from these values, and the network
/// returns to its phase: everything is quantized again.
///   {
///     quant::Calibration calibration(net);
///     for (const Batch& batch : some) net(batch.input);
///     calibration.finish();
///   }
/// A layer that does not run keeps its range, and a Calibration within another one belongs to it.
/// Slots with given parameters observe nothing. A learned scale is initialized by the first batch
/// and then stays. If an exception ends the scope, ranges and observers stay as they were. Without
/// finish(), a range that cannot be chosen is reported by the next pass.
class Calibration : SlotScope {
 public:
  /// Throws: GraphError if the network is not prepared.
  [[nodiscard]] explicit Calibration(Module& net, CalibrationOptions options = {});
  /// Chooses the ranges, which the network uses when the scope ends. Call it last.
  /// Throws: as Observer::params().
  void finish() { choose_calibrated(); }

 private:
  EvaluationMode evaluation_;
  NoGrad no_grad_;
};

/// Runs the network on one batch within a Calibration. If the network has several inputs, the batch
/// is a list with a tensor for each input. The ranges come from this batch alone;
/// calibrate(net, batch, {.anew = false}) adds it to what the observers saw before.
/// Throws: what Calibration(), running the network and finish() throw. On an error, ranges and
/// observers stay as they were.
void calibrate(Module& net, const Tensor& batch, CalibrationOptions options = {});
void calibrate(Module& net, const std::vector<Tensor>& batch, CalibrationOptions options = {});
/// The same for all batches of a loader or container: calibrate(net, DataLoader{some}). All inputs
/// of a Batch are used. Any other type of batch needs a member `input`, which is the only input.
/// Throws: also DataError if there is no batch.
template <class Batches>
void calibrate(Module& net, Batches&& batches, CalibrationOptions options = {}) requires requires {
  (*batches.begin()).input;
}
{
  Calibration calibration(net, options);
  bool any = false;
  for (const auto& batch : batches) {
    net(inputs_of(batch));
    any = true;
  }
  if (!any) throw DataError("calibrate", "there is no batch to calibrate with");
  calibration.finish();
}

}  // namespace quantrain::quant
