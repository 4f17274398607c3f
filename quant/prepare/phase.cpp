#include "quant/prepare/phase.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

constexpr auto kFirst = static_cast<int64_t>(Phase::kTraining);
constexpr auto kLast = static_cast<int64_t>(Phase::kFrozen);

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kCalibrating: return "calibrating";
    case Phase::kTraining: return "training";
    case Phase::kFrozen: return "frozen";
  }
  return "unknown";
}

std::vector<NamedState> type_constants(const QType& type, bool learned) {
  const auto constant = [](const char* name, int64_t value) {
    return NamedState(name, IntegerBuffer({1}, {.value = value}), true);
  };
  return {constant("bits", type.bits),
          constant("signed", type.is_signed),
          constant("narrow", type.narrow),
          constant("learned", learned)};
}

NamedState power_of_two_constant() {
  return {"power_of_two", IntegerBuffer({1}, {.value = 1}), true};
}

IntegerBuffer zero_points(int64_t channels, const QType& type) {
  return IntegerBuffer({channels}, {.least = type.qmin(), .most = type.qmax()});
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

std::string Phased::place(std::string_view type) const {
  const std::string running = Scope::path();
  return !running.empty() ? running : !layer_.empty() ? layer_ : std::string(type);
}

Phased::Phased(Simulation simulation)
    : phase_({1}, {.value = kFirst, .least = kFirst, .most = kLast}), simulation_(simulation) {}

Phase Phased::phase() const {
  switch (scope_) {
    case ScopeKind::kCalibration: return Phase::kCalibrating;
    case ScopeKind::kDeployed: return Phase::kFrozen;
    case ScopeKind::kNone:
    case ScopeKind::kFloat: break;
  }
  return stored();
}

void Phased::set_phase(Phase phase) {
  if (phase == Phase::kCalibrating) {
    throw QuantError(
        "phase",
        "calibrating is a scope and cannot be set: use calibrate(net, batches) or Calibration");
  }
  phase_.fill(static_cast<int64_t>(phase));
}

Simulation Phased::simulation() const {
  return scope_ == ScopeKind::kDeployed ? Simulation::kInteger : simulation_;
}

}  // namespace quantrain::quant
