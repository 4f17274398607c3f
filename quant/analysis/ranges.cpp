#include "quant/analysis/ranges.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "quant/analysis/number_text.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

template <class T>
std::string text_of(const T& value) {
  TextStream text;
  text << value;
  return text.str();
}

// The common value of all channels, or else the smallest and the largest.
template <class T>
std::string extremes_text(const std::vector<T>& values) {
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return *least == *largest ? text_of(*least) : text_of(*least) + " to " + text_of(*largest);
}

SlotRange of_output(std::string name, const FakeQuantize& slot) {
  const bool learned = is_learned(slot.config().estimator);
  SlotRange range{.name = std::move(name),
                  .type = slot.code_type(),
                  .source = slot.is_given() ? "given"
                            : learned       ? "learned"
                                            : std::string(slot.observer_kind()),
                  .phase = slot.phase()};
  if (slot.is_initialized()) range.params = slot.params();
  return range;
}

SlotRange of_weights(std::string name, const WeightQuantizer& slot) {
  const bool learned = is_learned(slot.config().estimator);
  QParams params = slot.params();
  const QType type = params.type;
  return {.name = std::move(name),
          .type = type,
          .params = std::move(params),
          .source = slot.is_given() ? "given"
                    : learned       ? "learned"
                                    : "weights",
          .phase = slot.phase()};
}

}  // namespace

Range SlotRange::range() const {
  if (!params) throw QuantError(name, "it has no range: it was not calibrated");
  const DefaultRounding rounding;
  Range range = params->float_range();
  for (size_t c = 1; c < params->scale.size(); ++c) {
    const Range channel = params->float_range(c);
    range = {std::min(range.min, channel.min), std::max(range.max, channel.max)};
  }
  return {computed(range.min), computed(range.max)};
}

Ranges ranges(Module& net) {
  Ranges result;
  for (const NamedModule& entry : net.named_modules()) {
    const std::string prefix = entry.name.empty() ? "" : entry.name + '.';
    const Slots& slots = entry.module->slots();
    for (size_t i = 0; i < slots.inputs.size(); ++i) {
      const auto* slot = dynamic_cast<const InputQuantize*>(slots.inputs[i].get());
      if (slot == nullptr) continue;
      result.slots.push_back(
          {.name = prefix + (i == 0 ? "input_slot" : "input_slot" + std::to_string(i)),
           .type = slot->params().type,
           .params = slot->params(),
           .source = "data",
           .phase = slot->phase()});
    }
    if (const auto* own = dynamic_cast<const FakeQuantize*>(entry.module))
      result.slots.push_back(of_output(entry.name, *own));
    if (const auto* slot = dynamic_cast<const WeightQuantizer*>(slots.weight.get()))
      result.slots.push_back(of_weights(prefix + "weight_slot", *slot));
    if (const auto* slot = dynamic_cast<const FakeQuantize*>(slots.output.get()))
      result.slots.push_back(of_output(prefix + "output_slot", *slot));
  }
  if (result.slots.empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  return result;
}

Ranges ranges(Module& net, const Diagnosis& measured) {
  Ranges result = ranges(net);
  const auto slot_of = [&](const std::string& path, const std::string& slot) {
    const std::string name = path.empty() ? slot : path + '.' + slot;
    const auto found = std::find_if(result.slots.begin(),
                                    result.slots.end(),
                                    [&](const SlotRange& range) { return range.name == name; });
    return found == result.slots.end() ? nullptr : &*found;
  };
  int input = 0;
  for (const LayerDiagnosis& layer : measured.layers) {
    const std::string number = input == 0 ? "" : std::to_string(input);
    SlotRange* const output = layer.is_input       ? slot_of("", "input_slot" + number)
                              : layer.slot.empty() ? nullptr
                                                   : slot_of(layer.slot, "output_slot");
    input += layer.is_input ? 1 : 0;
    if (output != nullptr) {
      output->saturated = layer.saturated();
      output->signal_to_noise = layer.snr_accumulated;
    }
    SlotRange* const weight = layer.weights ? slot_of(layer.name, "weight_slot") : nullptr;
    if (weight == nullptr) continue;
    weight->saturated = 0.0;
    weight->signal_to_noise = layer.weights->snr;
  }
  return result;
}

std::ostream& operator<<(std::ostream& stream, const Ranges& ranges) {
  const bool measured = std::any_of(ranges.slots.begin(),
                                    ranges.slots.end(),
                                    [](const SlotRange& slot) { return slot.signal_to_noise; });
  TextTable table(measured ? "llrrrrllrr" : "llrrrrll");
  const auto add = [&](const SlotRange* slot, std::vector<std::string> cells) {
    if (measured && slot == nullptr) {
      cells.insert(cells.end(), {"saturated", "dB"});
    } else if (measured) {
      cells.push_back(slot->saturated ? percent_text(*slot->saturated) : "-");
      cells.push_back(slot->signal_to_noise ? number_text(*slot->signal_to_noise) : "-");
    }
    table.add(std::move(cells));
  };
  add(nullptr, {"slot", "codes", "min", "max", "scale", "zero point", "source", "phase"});
  for (const SlotRange& slot : ranges.slots) {
    const std::string codes = text_of(slot.type);
    const std::string phase(to_string(slot.phase));
    if (!slot.params) {
      add(&slot, {slot.name, codes, "-", "-", "-", "-", slot.source + ", none yet", phase});
      continue;
    }
    const Range range = slot.range();
    add(&slot,
        {slot.name,
         codes,
         text_of(range.min),
         text_of(range.max),
         extremes_text(slot.params->scale),
         extremes_text(slot.params->zero_point),
         slot.source,
         phase});
  }
  return stream << table;
}

}  // namespace quantrain::quant
