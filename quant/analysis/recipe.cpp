#include "quant/analysis/recipe.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"
#include "layers/network/copy_network.hpp"

namespace quantrain::quant {
namespace {

void copy_all(std::vector<NamedState> to,
              const std::vector<NamedState>& from,
              std::string_view where) {
  for (NamedState& entry : to) {
    const auto same = std::find_if(from.begin(), from.end(), [&](const NamedState& other) {
      return other.name == entry.name;
    });
    if (same == from.end()) {
      throw GraphError(
          where, "Recipe::make makes another network: the prepared one has no \"", entry.name, '"');
    }
    entry.copy_values(*same);
  }
}

}  // namespace

Recipe recipe_of(const Network& net, QConfig config) {
  return {.make =
              [&net] {
                auto made = std::make_unique<Network>(copy(net));
                for (const NamedModule& entry : made->named_modules()) {
                  Slots empty;
                  empty.folded_weight = entry.module->slots().folded_weight;
                  entry.module->slots() = std::move(empty);
                }
                return made;
              },
          .config = std::move(config)};
}

std::unique_ptr<Module> float_copy(const Module& net,
                                   const Recipe& recipe,
                                   std::string_view where) {
  if (recipe.make == nullptr) throw GraphError(where, "Recipe::make is null");
  std::unique_ptr<Module> copy = recipe.make();
  if (copy == nullptr) throw GraphError(where, "Recipe::make returned null");
  copy_all(copy->named_parameters(), net.named_parameters(), where);
  copy_all(copy->named_buffers(), net.named_buffers(), where);
  return copy;
}

}  // namespace quantrain::quant
