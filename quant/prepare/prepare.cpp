#include "quant/prepare/prepare.hpp"

#include <algorithm>

#include "framework/arithmetic/stored.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "layers/dry_run.hpp"
#include "quant/prepare/prepared_form.hpp"
#include "quant/prepare/refusals.hpp"
#include "quant/prepare/scopes.hpp"
#include "quant/prepare/survey.hpp"

namespace quantrain::quant {
namespace {

enum class Purpose { kTraining, kCalibration };

// The observer of an activation whose configuration names none. With enough bits, the range covers
// everything. With fewer bits, it clips, because rare values would take codes that the others need.
// docs/quantization.md (14)
ObserverSpec default_observer(int bits, Purpose purpose) {
  constexpr int kEnough = 6;
  if (bits < kEnough) return PercentileOptions{};
  if (purpose == Purpose::kTraining) return RecentMinMaxOptions{};
  return MinMaxOptions{};
}

FakeQuantizeConfig output_of(const Site& site, const QConfig& config, Purpose purpose) {
  ActivationConfig activation = site.config->activation;
  if (site.gives_logits) {
    activation.bits = 8;
    activation.first_bits = 0;
  }
  const ObserverSpec observer = default_observer(activation.bits, purpose);
  FakeQuantizeConfig chosen = activation.fake_quantize(config.simulation, observer);
  chosen.range = site.range;
  return chosen;
}

/// The name of a tensor in a layer; empty if the layer computes it.
std::string name_in(const Module& layer, const Tensor& tensor) {
  for (const NamedState& entry : layer.named_parameters()) {
    if (tensor.defined() && entry.tensor.same_as(tensor)) return entry.name;
  }
  return "";
}

/// Adds the slots of a site to those of its layers.
void add_site(const Site& site, const QConfig& config, Purpose purpose, PreparedForm& form) {
  const auto layer = [&](const std::string& path) -> LayerForm& {
    for (LayerForm& entry : form.layers) {
      if (entry.path == path) return entry;
    }
    form.layers.push_back({.path = path});
    return form.layers.back();
  };
  const bool accumulators_out = site.gives_output && site.has_weights && config.output_bits == 32 &&
                                (site.last == site.layer || site.last == site.batch_norm);
  const bool quantizes_weights = site.has_weights && site.config->quantize;
  if (site.batch_norm != nullptr)
    layer(site.batch_norm_path).product = quantizes_weights ? site.path : std::string();
  if (quantizes_weights) {
    LayerForm& own = layer(site.path);
    own.weight = site.config->weight;
    own.given = site.weights;
    own.weight_name = name_in(*site.layer, site.weights.weight);
    own.bias_name = name_in(*site.layer, site.weights.bias);
    if (own.bias_name.empty() && site.weights.bias.defined()) own.weight_name.clear();
  }
  if (!accumulators_out && site.config->quantize)
    layer(site.last_path).output = output_of(site, config, purpose);
}

// The input. If the example holds codes, it gets their parameters. If the example holds
// floats, the parameters follow from the range that the configuration declares.
InputForm input_form(const Tensor& example,
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
    InputForm input{.params = codes->params, .name = name};
    if (codes->features != nullptr) input.features = *codes->features;
    return input;
  }
  if (!declared) {
    throw QuantError(name,
                     "the range of these floats is unknown: pass the input of a Dataset's or "
                     "DataLoader's batch, which carries its range, or set QConfig::input_range");
  }
  InputForm input{.params = integer::input_params(*declared, "QConfig.input_range"), .name = name};
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
  return input;
}

/// Gives the layers of a form the types of these parameters.
/// Throws: GraphError if a layer has no such slot.
void set_types(const Survey& survey, const GivenParams& given, PreparedForm& form) {
  const auto layer = [&](const std::string& path) -> LayerForm& {
    for (LayerForm& entry : form.layers) {
      if (entry.path == path) return entry;
    }
    form.layers.push_back({.path = path});
    return form.layers.back();
  };
  const auto refuse = [](const std::string& path, const char* what) {
    throw GraphError("prepare_given", "the layer \"", path, "\" ", what);
  };
  for (const auto& [path, params] : given.outputs) {
    check_activation(params, path);
    const auto ends = [name = path](const Site& site) { return site.last_path == name; };
    if (std::none_of(survey.sites().begin(), survey.sites().end(), ends))
      refuse(path, "ends no operation whose result is quantized");
    layer(path).output = FakeQuantizeConfig{.type = params.type, .simulation = form.simulation};
  }
  for (const auto& [path, params] : given.weights) {
    LayerForm& own = layer(path);
    if (!own.weight) refuse(path, "has no weights to quantize");
    own.weight->bits = params.type.bits;
    own.weight->narrow = params.type.narrow;
    own.weight->per_channel = params.axis == 0;
    own.weight->scheme = QScheme::kSymmetric;
    own.weight->estimator = Estimator::kClamped;
    own.weight->function.reset();
    own.weight->power_of_two = false;
    own.weight->first_bits = 0;
  }
}

/// Nothing lowers the bits of a network that does not train.
void refuse_first_bits(const PreparedForm& form) {
  for (const LayerForm& layer : form.layers) {
    if ((layer.weight && layer.weight->first_bits != 0) ||
        (layer.output && layer.output->first_bits != 0)) {
      throw QuantError(layer.path,
                       "first_bits are for training: leave them out, or use prepare_qat");
    }
  }
}

// Empties all slots of the network, unless they are to be kept. Allocates nothing when it does so.
class PluggedSlots {
 public:
  explicit PluggedSlots(Module& net) : modules_(net.named_modules()) {}
  PluggedSlots(const PluggedSlots&) = delete;
  PluggedSlots& operator=(const PluggedSlots&) = delete;
  ~PluggedSlots() {
    for (const NamedModule& entry : modules_) {
      Slots empty;
      empty.folded_weight.swap(entry.module->slots().folded_weight);
      entry.module->slots() = std::move(empty);
    }
  }
  void keep() { modules_.clear(); }

 private:
  std::vector<NamedModule> modules_;
};

void prepare(Module& net,
             const std::vector<Tensor>& examples,
             const QConfig& config,
             Purpose purpose,
             const GivenParams& given = {}) {
  const DefaultRounding rounding;
  check_examples(purpose == Purpose::kTraining ? "prepare_qat" : "prepare_ptq", examples);
  validate(config);
  for (const NamedModule& entry : net.named_modules()) {
    if (entry.module->has_filled_slot()) {
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

  PreparedForm form{.config = config, .simulation = config.simulation};
  for (size_t i = 0; i < inputs.size(); ++i) {
    form.inputs.push_back(input_form(
        inputs[i], inputs.size() == 1 ? "input" : "input" + std::to_string(i), config.input_range));
  }
  for (const Site& site : survey.sites()) add_site(site, config, purpose, form);
  set_types(survey, given, form);
  if (purpose == Purpose::kCalibration) refuse_first_bits(form);
  PluggedSlots plugged_slots(net);
  fill_slots(net, form);
  for (const auto& [path, params] : given.outputs)
    output_quantizer(net, path).update_params(params);
  for (const auto& [path, params] : given.weights) weight_quantizer(net, path).set_params(params);
  Refusals refusals;
  for (const NoIntegerForm& refused : without_integer_form(net, inputs)) {
    if (!survey.leaves_in_float(refused.layer)) refusals.keep(refused.error);
  }
  refusals.throw_all(net.label());
  if (purpose == Purpose::kCalibration) freeze(net);
  set_form(net, std::move(form));  // last, because it changes the parameters
  plugged_slots.keep();
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

void prepare_given(Module& net,
                   const std::vector<Tensor>& examples,
                   QConfig config,
                   const GivenParams& given) {
  config.output_bits = 32;
  prepare(net, examples, config, Purpose::kTraining, given);
}

}  // namespace quantrain::quant
