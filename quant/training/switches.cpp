#include "quant/training/switches.hpp"

namespace quantrain::quant {

Plugged::Plugged(Module& net) {
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    for (const auto& slot : slots.inputs) {
      if (auto* input = dynamic_cast<InputQuantize*>(slot.get())) inputs.push_back(input);
    }
    if (auto* activation = dynamic_cast<FakeQuantize*>(slots.output.get()))
      activations.push_back(activation);
    if (auto* weight = dynamic_cast<WeightQuantizer*>(slots.weight.get()))
      weights.push_back(weight);
    if (auto* norm = dynamic_cast<FoldedBatchNorm*>(slots.body.get())) batch_norms.push_back(norm);
  }
}

void enable_observers(Module& net, bool on) {
  for (FakeQuantize* activation : Plugged(net).activations) activation->enable_observer(on);
}

void enable_fake_quantize(Module& net, bool on) {
  const Plugged plugged(net);
  for (InputQuantize* input : plugged.inputs) input->enable_fake_quantize(on);
  for (FakeQuantize* activation : plugged.activations) activation->enable_fake_quantize(on);
  for (WeightQuantizer* weight : plugged.weights) weight->enable_fake_quantize(on);
}

void freeze_batch_norms(Module& net, bool frozen) {
  for (FoldedBatchNorm* norm : Plugged(net).batch_norms) norm->folding().frozen = frozen;
}

void set_simulation(Module& net, Simulation simulation) {
  const Plugged plugged(net);
  for (InputQuantize* input : plugged.inputs) input->set_simulation(simulation);
  for (FakeQuantize* activation : plugged.activations) activation->set_simulation(simulation);
  for (WeightQuantizer* weight : plugged.weights) weight->set_simulation(simulation);
}

void freeze(Module& net) {
  enable_observers(net, false);
  enable_fake_quantize(net, true);
  freeze_batch_norms(net, true);
}

DeployedMode::DeployedMode(Module& net) : evaluation_(net) {
  const Plugged plugged(net);
  for (InputQuantize* input : plugged.inputs) {
    inputs_.push_back({input, input->fake_quantize_enabled(), input->simulation()});
    input->enable_fake_quantize(true);
    input->set_simulation(Simulation::kInteger);
  }
  for (FakeQuantize* a : plugged.activations) {
    activations_.push_back(
        {a, a->observer_enabled(), a->fake_quantize_enabled(), a->config().simulation});
    a->enable_observer(false);
    a->enable_fake_quantize(true);
    a->set_simulation(Simulation::kInteger);
  }
  for (WeightQuantizer* w : plugged.weights) {
    weights_.push_back({w, w->fake_quantize_enabled(), w->simulation()});
    w->enable_fake_quantize(true);
    w->set_simulation(Simulation::kInteger);
  }
}

DeployedMode::~DeployedMode() {
  for (const Input& input : inputs_) {
    input.module->enable_fake_quantize(input.fake_quantize);
    input.module->set_simulation(input.simulation);
  }
  for (const Activation& a : activations_) {
    a.module->enable_observer(a.observer);
    a.module->enable_fake_quantize(a.fake_quantize);
    a.module->set_simulation(a.simulation);
  }
  for (const Weight& w : weights_) {
    w.module->enable_fake_quantize(w.fake_quantize);
    w.module->set_simulation(w.simulation);
  }
}

}  // namespace quantrain::quant
