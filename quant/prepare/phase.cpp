#include "quant/prepare/phase.hpp"

#include "framework/autograd/node.hpp"
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

int32_t saved_integer(float value, int32_t lowest, int32_t highest, std::string_view what) {
  const bool inside = value >= static_cast<float>(lowest) && value <= static_cast<float>(highest);
  if (!inside || value != static_cast<float>(static_cast<int32_t>(value))) {
    throw DataError("state",
                    "the loaded state holds ",
                    what,
                    ' ',
                    value,
                    ", expected a whole number from ",
                    lowest,
                    " to ",
                    highest);
  }
  return static_cast<int32_t>(value);
}

std::vector<std::pair<const char*, float>> type_constants(const QType& type, bool learned) {
  const auto number = [](bool value) { return value ? 1.0f : 0.0f; };
  return {{"bits", static_cast<float>(type.bits)},
          {"signed", number(type.is_signed)},
          {"narrow", number(type.narrow)},
          {"learned", number(learned)}};
}

void check_given(
    const QParams& params, const QType& type, int axis, int64_t channels, std::string_view where) {
  validate(params, where);
  if (params.type == type && params.axis == axis &&
      static_cast<int64_t>(params.scale.size()) == channels) {
    return;
  }
  throw QuantError(where,
                   "parameters (",
                   params,
                   ") do not fit: expected type ",
                   type,
                   " with ",
                   channels,
                   " channels along axis ",
                   axis);
}

std::string PhasedSlot::place(std::string_view type) const {
  const std::string running = Scope::path();
  return !running.empty() ? running : !layer_.empty() ? layer_ : std::string(type);
}

PhasedSlot::PhasedSlot(Simulation simulation)
    : phase_(Tensor::full({1}, saved(Phase::kTraining))), simulation_(simulation) {}

Phase PhasedSlot::phase() const {
  switch (scope_) {
    case ScopeKind::kCalibration: return Phase::kCalibrating;
    case ScopeKind::kDeployed: return Phase::kFrozen;
    case ScopeKind::kNone:
    case ScopeKind::kFloat: break;
  }
  return stored();
}

Phase PhasedSlot::stored() const {
  constexpr auto kFirst = static_cast<int32_t>(Phase::kTraining);
  constexpr auto kLast = static_cast<int32_t>(Phase::kFrozen);
  return static_cast<Phase>(saved_integer(phase_.data()[0], kFirst, kLast, "phase"));
}

void PhasedSlot::set_phase(Phase phase) {
  if (phase == Phase::kCalibrating) {
    throw QuantError(
        "phase",
        "calibrating is a scope and cannot be set: use calibrate(net, batches) or Calibration");
  }
  phase_.mutable_data()[0] = saved(phase);
}

Simulation PhasedSlot::simulation() const {
  return scope_ == ScopeKind::kDeployed ? Simulation::kInteger : simulation_;
}

}  // namespace quantrain::quant
