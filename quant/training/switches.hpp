#pragma once

#include <vector>

#include "layers/evaluation_mode.hpp"
#include "layers/module.hpp"
#include "quant/training/fake_quantize.hpp"
#include "quant/training/input_quantize.hpp"
#include "quant/training/weight_quantizer.hpp"

// Switches over all that prepare_ptq and prepare_qat plugged into a network.
namespace quantrain::quant {

/// What the slots of a network hold, in the order of its modules; empty if it was not prepared.
struct Plugged {
  std::vector<InputQuantize*> inputs;
  std::vector<FakeQuantize*> activations;
  std::vector<WeightQuantizer*> weights;
  std::vector<FoldedBatchNorm*> batch_norms;

  explicit Plugged(Module& net);
  bool empty() const { return inputs.empty() && activations.empty() && weights.empty(); }
};

/// Observers on or off; off keeps the last parameters.
void enable_observers(Module& net, bool on);
/// Fake quantization of activations and weights on or off.
void enable_fake_quantize(Module& net, bool on);
/// Whether folded batch norms stop using batch statistics in training: from then on training equals
/// the deployed network.
void freeze_batch_norms(Module& net, bool frozen = true);
void set_simulation(Module& net, Simulation simulation);
/// Observers off, fake quantization on, batch norms frozen: the end of calibration, or of the
/// moving part of QAT. Like every switch it is no part of a saved state: a program that resumes
/// after it loads, then freezes again.
void freeze(Module& net);

/// While it lives, the network computes what its deployed form computes: evaluation mode, observers
/// off, fake quantization on, integer engine. Then every switch is as it was.
class DeployedMode {
 public:
  explicit DeployedMode(Module& net);
  ~DeployedMode();
  DeployedMode(const DeployedMode&) = delete;
  DeployedMode& operator=(const DeployedMode&) = delete;

 private:
  struct Input {
    InputQuantize* module;
    bool fake_quantize;
    Simulation simulation;
  };
  struct Activation {
    FakeQuantize* module;
    bool observer, fake_quantize;
    Simulation simulation;
  };
  struct Weight {
    WeightQuantizer* module;
    bool fake_quantize;
    Simulation simulation;
  };
  EvaluationMode evaluation_;
  std::vector<Input> inputs_;
  std::vector<Activation> activations_;
  std::vector<Weight> weights_;
};

}  // namespace quantrain::quant
