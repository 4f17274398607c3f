#include "quant/prepare/prepare.hpp"

#include <algorithm>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "layers/dry_run.hpp"
#include "quant/prepare/refusals.hpp"
#include "quant/prepare/scopes.hpp"
#include "quant/prepare/survey.hpp"

namespace quantrain::quant {
namespace {

enum class Purpose { kTraining, kCalibration };

template <class M>
std::shared_ptr<M> plugged(std::shared_ptr<M> slot, const Module& layer) {
  slot->train(layer.training());
  return slot;
}

// The observer of an activation whose configuration names none. With enough bits, the range covers
// everything. With fewer bits, it clips, because rare values would take codes that the others need.
// docs/quantization.md (14)
ObserverSpec default_observer(int bits, Purpose purpose) {
  constexpr int kEnough = 6;
  if (bits < kEnough) return PercentileOptions{};
  if (purpose == Purpose::kTraining) return RecentMinMaxOptions{};
  return MinMaxOptions{};
}

std::shared_ptr<FakeQuantize> activation_slot(const Site& site,
                                              const QConfig& config,
                                              Purpose purpose) {
  ActivationConfig activation = site.config->activation;
  if (site.gives_logits) activation.bits = 8;
  const ObserverSpec observer = default_observer(activation.bits, purpose);
  FakeQuantizeConfig chosen = activation.fake_quantize(config.simulation, observer);
  chosen.range = site.range;
  auto slot = std::make_shared<FakeQuantize>(std::move(chosen));
  slot->set_layer(site.last_path);
  return plugged(std::move(slot), *site.last);
}

void plug(const Site& site, const QConfig& config, Purpose purpose) {
  const bool accumulators_out = site.gives_output && site.has_weights && config.output_bits == 32 &&
                                (site.last == site.layer || site.last == site.batch_norm);
  std::shared_ptr<Folding> folding;
  if (site.batch_norm != nullptr) {
    folding = std::make_shared<Folding>(site.batch_norm_path, *site.batch_norm);
    site.batch_norm->slots().body =
        plugged(std::make_shared<PreparedBatchNorm>(folding), *site.batch_norm);
  }
  if (site.has_weights && site.config->quantize) {
    if (folding != nullptr) folding->product = site.path;
    auto slot = std::make_shared<WeightQuantizer>(site.config->weight, site.weights, folding);
    slot->set_simulation(config.simulation);
    slot->set_layer(site.path);
    site.layer->slots().weight = plugged(std::move(slot), *site.layer);
  }
  if (!accumulators_out && site.config->quantize) {
    site.last->slots().output = activation_slot(site, config, purpose);
  }
}

// The input slot. If the example holds codes, the slot gets their parameters. If the example holds
// floats, the parameters follow from the range that the configuration declares.
std::shared_ptr<InputQuantize> input_slot(const Tensor& example,
                                          const std::string& name,
                                          const std::optional<Range>& declared) {
  if (const std::shared_ptr<const Codes> codes = input_codes(example)) {
    if (declared && !(integer::input_params(*declared, "QConfig.input_range") == codes->params)) {
      throw QuantError(name,
                       "the example's codes mean ",
                       describe_input(codes->params, codes->features.get()),
                       ", and QConfig::input_range says [",
                       declared->min,
                       ", ",
                       declared->max,
                       "]; the data declare the range: leave input_range out");
    }
    return std::make_shared<InputQuantize>(codes->params, codes->features, name);
  }
  if (!declared) {
    throw QuantError(name,
                     "the range of these floats is unknown: pass the input of a Dataset's or "
                     "DataLoader's batch, which carries its range, or set QConfig::input_range");
  }
  auto slot = std::make_shared<InputQuantize>(
      integer::input_params(*declared, "QConfig.input_range"), nullptr, name);
  float min = 0.0f;
  float max = 0.0f;
  const Floats example_floats = example.floats();
  kernels::min_max_f32(example.elements(), example_floats, &min, &max);
  if (!(min >= declared->min && max <= declared->max)) {
    throw DataError(name,
                    "the example's values reach from ",
                    min,
                    " to ",
                    max,
                    ", outside of QConfig::input_range [",
                    declared->min,
                    ", ",
                    declared->max,
                    "]");
  }
  return slot;
}

// Attaches a list of the new parameters to each old parameter. An optimizer that has only the old
// parameters finds the list, and refuses to step.
void announce_new_parameters(const Module& net, const std::vector<NamedState>& before) {
  auto added = std::make_shared<std::vector<NamedState>>();
  for (NamedState& entry : net.named_parameters()) {
    const bool known = std::any_of(before.begin(), before.end(), [&](const NamedState& old) {
      return old.tensor.same_as(entry.tensor);
    });
    if (known) continue;
    entry.tensor.set_name(entry.name);
    added->push_back(std::move(entry));
  }
  if (added->empty()) return;
  for (NamedState entry : before) TensorAccess::set_companions(entry.tensor, added);
}

// Empties all slots of the network, unless they are to be kept. Allocates nothing when it does so.
class PluggedSlots {
 public:
  explicit PluggedSlots(Module& net) : modules_(net.named_modules()) {}
  PluggedSlots(const PluggedSlots&) = delete;
  PluggedSlots& operator=(const PluggedSlots&) = delete;
  ~PluggedSlots() {
    for (const NamedModule& entry : modules_) entry.module->slots() = {};
  }
  void keep() { modules_.clear(); }

 private:
  std::vector<NamedModule> modules_;
};

void prepare(Module& net,
             const std::vector<Tensor>& examples,
             const QConfig& config,
             Purpose purpose) {
  const DefaultRounding rounding;
  check_examples(purpose == Purpose::kTraining ? "prepare_qat" : "prepare_ptq", examples);
  validate(config);
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    if (!slots.inputs.empty() || slots.weight || slots.body || slots.output) {
      throw GraphError(entry.name.empty() ? net.label() : entry.name,
                       "the network is prepared already");
    }
  }
  std::vector<Tensor> inputs;
  for (const Tensor& example : examples) inputs.push_back(example.detach());
  const Graph graph = [&] {
    const DryRun dry_run;  // a FakeQuantize in the network may have no parameters yet
    return record_graph(net, inputs);
  }();
  const Survey survey(net, graph, inputs, config);

  std::vector<std::shared_ptr<InputQuantize>> slots;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto slot = input_slot(
        inputs[i], inputs.size() == 1 ? "input" : "input" + std::to_string(i), config.input_range);
    slot->set_simulation(config.simulation);
    slots.push_back(plugged(std::move(slot), net));
  }
  const std::vector<NamedState> before = net.named_parameters();
  PluggedSlots plugged_slots(net);
  net.slots().inputs.assign(slots.begin(), slots.end());
  for (const Site& site : survey.sites()) plug(site, config, purpose);
  Refusals refusals;
  for (const NoIntegerForm& refused : without_integer_form(net, inputs)) {
    if (!survey.leaves_in_float(refused.layer)) refusals.keep(refused.error);
  }
  refusals.throw_all(net.label());
  plugged_slots.keep();
  announce_new_parameters(net, before);
  if (purpose == Purpose::kCalibration) freeze(net);
  net.slots().prepare_again = [inputs, config, purpose](const Module& from, Module& to) {
    prepare(to, inputs, config, purpose);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* const given = dynamic_cast<const InputQuantize*>(from.slots().inputs[i].get());
      auto* const own = dynamic_cast<InputQuantize*>(to.slots().inputs[i].get());
      if (given == nullptr || own == nullptr) continue;
      if (i == 0) set_simulation(to, given->simulation());
      own->set_outside(given->outside());
    }
  };
}

}  // namespace

void prepare_qat(Module& net, const Tensor& example, const QConfig& config) {
  prepare(net, {example}, config, Purpose::kTraining);
}

void prepare_qat(Module& net, const std::vector<Tensor>& examples, const QConfig& config) {
  prepare(net, examples, config, Purpose::kTraining);
}

void prepare_ptq(Module& net, const Tensor& example, const QConfig& config) {
  prepare(net, {example}, config, Purpose::kCalibration);
}

void prepare_ptq(Module& net, const std::vector<Tensor>& examples, const QConfig& config) {
  prepare(net, examples, config, Purpose::kCalibration);
}

}  // namespace quantrain::quant
