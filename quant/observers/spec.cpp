#include "quant/observers/spec.hpp"

#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

template <class... Options>
std::vector<ObserverSpec> all(const std::variant<Options...>& /*spec*/) {
  return {Options{}...};
}

}  // namespace

std::string_view kind(const ObserverSpec& spec) {
  return std::visit([](const auto& options) { return options.kKind; }, spec);
}

std::vector<ObserverSpec> observer_specs() { return all(ObserverSpec{}); }

ObserverSpec observer_spec(std::string_view name) {
  std::string known;
  for (const ObserverSpec& spec : observer_specs()) {
    if (kind(spec) == name) return spec;
    known.append(known.empty() ? "" : ", ").append(kind(spec));
  }
  throw QuantError("observer", "no kind \"", name, "\"; known: ", known);
}

std::unique_ptr<Observer> make_observer(const ObserverSpec& spec, ObserverShape shape) {
  return std::visit([&](const auto& options) { return options.make(std::move(shape)); }, spec);
}

}  // namespace quantrain::quant
