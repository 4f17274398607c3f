#include "layers/copy.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "layers/state.hpp"

namespace quantrain {
namespace {

constexpr const char* kCopy = "copy";

void check_independent(const Module& from, const Module& to) {
  const std::vector<NamedState> own = state(to);
  for (const NamedState& entry : state(from)) {
    const bool shared = std::any_of(
        own.begin(), own.end(), [&](const NamedState& other) { return other.same_as(entry); });
    if (shared)
      throw GraphError(kCopy,
                       "both networks hold the same \"",
                       entry.name,
                       "\": the function must make new layers");
  }
}

bool is_prepared(Module& net) {
  for (const NamedModule& entry : net.named_modules()) {
    if (entry.module->has_filled_slot()) return true;
  }
  return false;
}

}  // namespace

void copy_into(const Module& from, Module& to) {
  check_independent(from, to);
  if (is_prepared(to))
    throw GraphError(kCopy, "the new network is prepared already: make the float network");
  if (from.slots().preparation != nullptr)
    from.slots().preparation->fill(from, to, [](const std::string& path) { return path; });
  copy_state(from, to);
  const std::vector<NamedState> parameters = from.named_parameters();
  std::vector<NamedState> own = to.named_parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    own[i].tensor.set_requires_grad(parameters[i].tensor.requires_grad());
  to.train_like(from);
}

}  // namespace quantrain
