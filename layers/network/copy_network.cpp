#include "layers/network/copy_network.hpp"

#include <utility>
#include <vector>

#include "layers/copy.hpp"

namespace quantrain {
namespace {

/// Copies of tensors, each made once.
class Clones {
 public:
  NamedState of(const NamedState& entry) {
    for (const auto& [from, to] : made_) {
      if (!from.same_as(entry)) continue;
      NamedState found = to;
      found.name = entry.name;
      return found;
    }
    made_.emplace_back(entry, clone(entry));
    return made_.back().second;
  }

 private:
  static NamedState clone(const NamedState& entry) {
    if (!entry.holds_integers()) return entry.copy();
    const int64_t least = entry.integers.least();
    IntegerBuffer integers(entry.shape(),
                           {.value = least, .least = least, .most = entry.integers.most()});
    integers.set(entry.integers.values());
    return NamedState(entry.name, integers);
  }

  std::vector<std::pair<NamedState, NamedState>> made_;
};

}  // namespace

Network copy(const Network& net) {
  Clones clones;
  NetworkParts parts = net.parts();
  for (NetworkTensor& entry : parts.tensors)
    entry.tensor = clones.of(NamedState(entry.name, entry.tensor)).tensor;
  for (NetworkStep& step : parts.steps) {
    LayerMembers members = members_of(*step.layer);
    for (NamedState& entry : members.state) entry = clones.of(entry);
    std::vector<float> folded = step.layer->slots().folded_weight;
    step.layer = make_layer(step.layer->type(), members);
    step.layer->slots().folded_weight = std::move(folded);
  }
  Network result(std::move(parts));
  copy_into(net, result);
  return result;
}

}  // namespace quantrain
