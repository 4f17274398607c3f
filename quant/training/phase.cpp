#include "quant/training/phase.hpp"

#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

float saved(Phase phase) { return static_cast<float>(static_cast<int>(phase)); }

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kCalibrating: return "calibrating";
    case Phase::kTraining: return "training";
    case Phase::kFrozen: return "frozen";
  }
  return "unknown";
}

PhasedSlot::PhasedSlot(Simulation simulation)
    : phase_(Tensor::full({1}, saved(Phase::kTraining))), simulation_(simulation) {}

Phase PhasedSlot::phase() const {
  switch (scope_) {
    case Scope::kCalibration: return Phase::kCalibrating;
    case Scope::kDeployed: return Phase::kFrozen;
    case Scope::kNone:
    case Scope::kFloat: break;
  }
  const float value = phase_.data()[0];
  for (const Phase phase : {Phase::kTraining, Phase::kFrozen}) {
    if (value == saved(phase)) return phase;
  }
  throw DataError(
      "phase", "the loaded state holds phase ", value, ", expected 1 (training) or 2 (frozen)");
}

void PhasedSlot::set_phase(Phase phase) {
  if (phase == Phase::kCalibrating) {
    throw QuantError(
        "phase", "calibrating is not set but a scope: use calibrate(net, batches) or Calibration");
  }
  phase_.mutable_data()[0] = saved(phase);
}

Simulation PhasedSlot::simulation() const {
  return scope_ == Scope::kDeployed ? Simulation::kInteger : simulation_;
}

}  // namespace quantrain::quant
