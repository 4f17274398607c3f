#include "quant/prepare/scopes.hpp"

#include <exception>

namespace quantrain::quant {
namespace {

template <class M>
M& slot_at(Module& net, std::string_view path, Module* slot, const char* what) {
  if (auto* found = dynamic_cast<M*>(slot)) return *found;
  throw GraphError(path.empty() ? net.label() : std::string(path),
                   "no ",
                   what,
                   " is plugged in here",
                   Plugged(net).empty() ? ": the network is not prepared" : "");
}

[[noreturn]] void refuse_unprepared(const Module& net) {
  throw GraphError(net.label(),
                   "the network is not prepared: prepare_ptq or prepare_qat comes first");
}

/// Throws: GraphError if a whole network is not prepared. A part of a network, which has a name, may
/// have nothing to quantize.
Plugged plugged(Module& net) {
  Plugged all(net);
  if (all.empty() && net.name().empty()) refuse_unprepared(net);
  return all;
}

}  // namespace

Plugged::Plugged(Module& net) {
  const auto add = [&](Module* slot) {
    if (auto* phased = dynamic_cast<Phased*>(slot)) all.push_back(phased);
    if (auto* input = dynamic_cast<InputQuantize*>(slot)) inputs.push_back(input);
    if (auto* activation = dynamic_cast<FakeQuantize*>(slot)) activations.push_back(activation);
    if (auto* weight = dynamic_cast<WeightQuantizer*>(slot)) weights.push_back(weight);
    if (auto* norm = dynamic_cast<PreparedBatchNorm*>(slot)) batch_norms.push_back(norm);
  };
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    add(entry.module);
    for (const auto& input : slots.inputs) add(input.get());
    for (Module* slot :
         {static_cast<Module*>(slots.weight.get()), slots.body.get(), slots.output.get()})
      add(slot);
  }
}

void set_phase(Module& net, Phase phase) {
  for (Phased* slot : plugged(net).all) slot->set_phase(phase);
}

void freeze_batch_norms(Module& net, bool frozen) {
  for (PreparedBatchNorm* norm : plugged(net).batch_norms) norm->folding().freeze(frozen);
}

void freeze(Module& net) {
  set_phase(net, Phase::kFrozen);
  freeze_batch_norms(net);
}

void set_simulation(Module& net, Simulation simulation) {
  for (Phased* slot : plugged(net).all) slot->set_simulation(simulation);
}

void set_outside(Module& net, Outside outside) {
  for (InputQuantize* input : plugged(net).inputs) input->set_outside(outside);
}

WeightQuantizer& weight_quantizer(Module& net, std::string_view path) {
  return slot_at<WeightQuantizer>(
      net, path, net.find(path).slots().weight.get(), "WeightQuantizer");
}

FakeQuantize& output_quantizer(Module& net, std::string_view path) {
  return slot_at<FakeQuantize>(net, path, net.find(path).slots().output.get(), "FakeQuantize");
}

SlotScope::SlotScope(Module& net, Kind kind, bool anew) : exceptions_(std::uncaught_exceptions()) {
  const std::vector<Phased*> slots = Plugged(net).all;
  before_.reserve(slots.size());
  for (Phased* slot : slots) {
    before_.keep(slot, slot->scope_);
    if (kind == Kind::kCalibration && slot->scope_ != kind) slot->begin_calibration(anew);
    slot->scope_ = kind;
  }
}

void SlotScope::choose_calibrated() const {
  for (const auto& [slot, before] : before_.kept()) {
    if (before != Kind::kCalibration) slot->choose_calibrated();
  }
}

void SlotScope::set(const std::vector<Phased*>& slots, Kind kind) {
  for (Phased* slot : slots) slot->scope_ = kind;
}

SlotScope::~SlotScope() {
  const bool complete = std::uncaught_exceptions() == exceptions_;
  // If two layers share a slot, the stack has it twice; the first value, restored last, counts.
  before_.end([&](Phased* slot, Kind before, Kind* later) {
    Kind& now = later != nullptr ? *later : slot->scope_;
    if (now == Kind::kCalibration && before != Kind::kCalibration) slot->end_calibration(complete);
    now = before;
  });
}

SaturatingInputs::SaturatingInputs(Module& net) {
  for (InputQuantize* input : Plugged(net).inputs) {
    before_.emplace_back(input, input->outside());
    input->set_outside(Outside::kSaturate);
  }
}

SaturatingInputs::~SaturatingInputs() {
  for (const auto& [input, outside] : before_) input->set_outside(outside);
}

Calibration::Calibration(Module& net, CalibrationOptions options)
    : SlotScope(net, Kind::kCalibration, options.anew), evaluation_(net) {
  if (Plugged(net).empty()) refuse_unprepared(net);
}

void calibrate(Module& net, const Tensor& batch, CalibrationOptions options) {
  Calibration calibration(net, options);
  net(batch);
  calibration.finish();
}

void calibrate(Module& net, const std::vector<Tensor>& batch, CalibrationOptions options) {
  Calibration calibration(net, options);
  net(batch);
  calibration.finish();
}

}  // namespace quantrain::quant
