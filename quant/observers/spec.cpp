#include "quant/observers/spec.hpp"

#include "quant/observers/kinds.hpp"

namespace quantrain::quant {

std::string_view kind(const ObserverSpec& spec) { return kind_of(spec); }

std::vector<ObserverSpec> observer_specs() { return kinds_of(ObserverSpec{}); }

ObserverSpec observer_spec(std::string_view name) {
  return spec_of<ObserverSpec>(name, "observer");
}

std::unique_ptr<Observer> make_observer(const ObserverSpec& spec, ObserverShape shape) {
  return std::visit([&](const auto& options) { return options.make(std::move(shape)); }, spec);
}

}  // namespace quantrain::quant
