#include "quant/prepare/prepared_form.hpp"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "layers/network/network_file.hpp"
#include "layers/state.hpp"
#include "quant/prepare/batch_norm_folding.hpp"
#include "quant/prepare/input_quantize.hpp"

namespace quantrain::quant {
namespace {

/// Fills slots, and adds up the bytes of their state.
class Filling {
 public:
  Filling(Module& net, const PreparedForm& form, std::optional<int64_t> most_bytes)
      : net_(net), form_(form), most_bytes_(most_bytes) {
    for (const NamedModule& entry : net.named_modules()) modules_.emplace(entry.name, entry.module);
  }

  void run() {
    std::vector<std::shared_ptr<Module>> inputs;
    for (const InputForm& input : form_.inputs) {
      auto features = input.features.empty()
                          ? nullptr
                          : std::make_shared<const integer::InputFeatures>(input.features);
      auto slot = std::make_shared<InputQuantize>(input.params, std::move(features), input.name);
      slot->set_outside(input.outside);
      inputs.push_back(plugged(std::move(slot), net_));
    }
    net_.slots().inputs = std::move(inputs);
    for (const LayerForm& form : form_.layers) {
      if (form.product) fill_body(form);
    }
    for (const LayerForm& form : form_.layers) {
      if (form.weight) fill_weight(form);
    }
    for (const LayerForm& form : form_.layers) {
      if (!form.output) continue;
      Module& layer = at(form.path);
      refuse_filled(form, layer.slots().output.get());
      auto slot = std::make_shared<FakeQuantize>(*form.output);
      slot->set_layer(form.path);
      layer.slots().output = plugged(std::move(slot), layer);
    }
  }

 private:
  Module& at(const std::string& path) const {
    const auto found = modules_.find(path);
    if (found == modules_.end())
      throw GraphError(net_.label(), "has no layer \"", path, "\" whose slots could be filled");
    return *found->second;
  }

  static void refuse_filled(const LayerForm& form, const Module* slot) {
    if (slot != nullptr) throw GraphError(form.path, "the slot is filled already");
  }

  template <class M>
  std::shared_ptr<M> plugged(std::shared_ptr<M> slot, const Module& layer) {
    for (const NamedState& entry : state(*slot)) bytes_ += std::ssize(entry.bytes());
    if (most_bytes_ && bytes_ > *most_bytes_) {
      throw DataError(net_.label(),
                      "the state of its slots takes more than ",
                      *most_bytes_,
                      " bytes, which the file does not have");
    }
    if constexpr (std::is_base_of_v<Phased, M>) slot->set_simulation(form_.simulation);
    slot->train(layer.training());
    return slot;
  }

  void fill_body(const LayerForm& form) {
    Module& layer = at(form.path);
    auto* const norm = dynamic_cast<BatchNorm*>(&layer);
    if (norm == nullptr)
      throw GraphError(form.path, "is a ", layer.type(), ", not a batch norm to prepare");
    refuse_filled(form, layer.slots().body.get());
    auto folding = std::make_shared<Folding>(form.path, *norm);
    folding->product = *form.product;
    if (!form.product->empty() && !foldings_.emplace(*form.product, folding).second)
      throw GraphError(*form.product, "two batch norms would be folded into this layer");
    layer.slots().body = plugged(std::make_shared<PreparedBatchNorm>(std::move(folding)), layer);
  }

  void fill_weight(const LayerForm& form) {
    Module& layer = at(form.path);
    if (!layer.has_weight_slot())
      throw GraphError(form.path, "is a ", layer.type(), ", which has no weights to quantize");
    refuse_filled(form, layer.slots().weight.get());
    Weights own = form.given;
    if (!form.weight_name.empty()) {
      own.weight = tensor(layer, form, form.weight_name);
      own.bias = form.bias_name.empty() ? Tensor() : tensor(layer, form, form.bias_name);
    }
    const auto found = foldings_.find(form.path);
    std::shared_ptr<Folding> folding = found == foldings_.end() ? nullptr : found->second;
    if (folding != nullptr && folding->gamma.elements() != own.weight.dim(0)) {
      throw GraphError(form.path,
                       "has ",
                       own.weight.dim(0),
                       " outputs, but the batch norm to fold has ",
                       folding->gamma.elements(),
                       " channels");
    }
    auto slot = std::make_shared<WeightQuantizer>(*form.weight, own, std::move(folding));
    slot->set_layer(form.path);
    layer.slots().weight = plugged(std::move(slot), layer);
  }

  static Tensor tensor(const Module& layer, const LayerForm& form, const std::string& name) {
    for (const NamedState& entry : state(layer)) {
      if (entry.name == name && entry.tensor.defined() && entry.tensor.rank() > 0 &&
          entry.tensor.dim(0) > 0)
        return entry.tensor;
    }
    throw GraphError(form.path, "has no parameter \"", name, "\" to quantize");
  }

  Module& net_;
  const PreparedForm& form_;
  std::optional<int64_t> most_bytes_;
  int64_t bytes_ = 0;
  std::map<std::string, Module*> modules_;
  std::map<std::string, std::shared_ptr<Folding>> foldings_;  ///< by the path of the product
};

// Attaches a list of the slots' parameters to each other parameter. An optimizer that has only the
// other parameters finds the list, and refuses to step.
void announce_slots(Module& net) {
  std::vector<NamedState> of_slots;
  const auto collect = [&](const Module* slot) {
    if (slot == nullptr) return;
    for (NamedState& entry : slot->named_parameters()) of_slots.push_back(std::move(entry));
  };
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    for (const auto& input : slots.inputs) collect(input.get());
    collect(slots.weight.get());
    collect(slots.body.get());
    collect(slots.output.get());
  }
  auto added = std::make_shared<std::vector<NamedState>>();
  std::vector<Tensor> others;
  for (NamedState& entry : net.named_parameters()) {
    const bool is_of_slot =
        std::any_of(of_slots.begin(), of_slots.end(), [&](const NamedState& other) {
          return other.same_as(entry);
        });
    if (!is_of_slot) {
      others.push_back(entry.tensor);
      continue;
    }
    entry.tensor.set_name(entry.name);
    added->push_back(std::move(entry));
  }
  if (added->empty()) return;
  for (Tensor& other : others) TensorAccess::set_companions(other, added);
}

class FormOfNetwork : public Preparation {
 public:
  explicit FormOfNetwork(PreparedForm form) : form_(std::move(form)) {}

  const PreparedForm& form() const { return form_; }

  void fill(const Module& from, Module& to, const NewPath& path) const override {
    PreparedForm form = now(from);
    for (LayerForm& layer : form.layers) {
      layer.path = path(layer.path);
      if (layer.product && !layer.product->empty()) layer.product = path(*layer.product);
    }
    fill_slots(to, form);
    set_form(to, std::move(form));
  }

  std::string describe(const Module& net) const override { return to_json(now(net)); }

 private:
  /// The form with the settings that may have changed since.
  PreparedForm now(const Module& net) const {
    PreparedForm form = form_;
    const auto& slots = net.slots().inputs;
    for (size_t i = 0; i < std::min(slots.size(), form.inputs.size()); ++i) {
      const auto* const input = dynamic_cast<const InputQuantize*>(slots[i].get());
      if (input == nullptr) continue;
      form.inputs[i].outside = input->outside();
      form.simulation = input->simulation();
    }
    return form;
  }

  PreparedForm form_;
};

}  // namespace

void fill_slots(Module& net, const PreparedForm& form, std::optional<int64_t> most_bytes) {
  Filling(net, form, most_bytes).run();
}

void set_form(Module& net, PreparedForm form) {
  auto preparation = std::make_shared<FormOfNetwork>(std::move(form));
  announce_slots(net);
  net.slots().preparation = std::move(preparation);
}

const QConfig& config_of(const Module& net) {
  const auto* const prepared = dynamic_cast<const FormOfNetwork*>(net.slots().preparation.get());
  if (prepared == nullptr)
    throw GraphError(net.label(), "is not prepared, so it has no configuration");
  return prepared->form().config;
}

bool register_slots() {
  set_restore_slots([](Module& net, std::string_view json, int64_t most_bytes) {
    PreparedForm form = form_from_json(json);
    fill_slots(net, form, most_bytes);
    set_form(net, std::move(form));
  });
  return true;
}

}  // namespace quantrain::quant
