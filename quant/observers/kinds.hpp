#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/core/error.hpp"

// Lists of structs of options: a variant holds the options of one kind, and each struct has the
// name of its kind, kKind.
namespace quantrain::quant {

/// Each kind with its default options, in the order of the list.
template <class... Options>
std::vector<std::variant<Options...>> kinds_of(const std::variant<Options...>& /*list*/) {
  return {Options{}...};
}

template <class... Options>
std::string_view kind_of(const std::variant<Options...>& spec) {
  return std::visit([](const auto& options) { return options.kKind; }, spec);
}

/// Default options of a kind.
/// Throws: QuantError naming `where` and listing the known kinds if there is no such kind.
template <class Spec>
Spec spec_of(std::string_view name, std::string_view where) {
  std::string known;
  for (const Spec& spec : kinds_of(Spec{})) {
    if (kind_of(spec) == name) return spec;
    known.append(known.empty() ? "" : ", ").append(kind_of(spec));
  }
  throw QuantError(where, "no kind \"", name, "\"; known: ", known);
}

}  // namespace quantrain::quant
