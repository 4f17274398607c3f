#include "layers/onnx/layout.hpp"

#include <algorithm>
#include <utility>

namespace quantrain::onnx {

Atom Atoms::add(int64_t extent) {
  extents_.push_back(extent);
  return static_cast<Atom>(extents_.size() - 1);
}

Group Atoms::group(int64_t extent) { return extent == 1 ? Group() : Group{add(extent)}; }

Extent Atoms::extent(const Group& group) const {
  Extent product{1};
  for (const Atom atom : group) product = product * Extent{extent(atom), atom == kBatch};
  return product;
}

Group flat(const Groups& groups) {
  Group all;
  for (const Group& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

namespace {

void replace(Groups& groups, Atom old, Atom first, Atom second) {
  for (Group& group : groups) {
    const auto at = std::find(group.begin(), group.end(), old);
    if (at == group.end()) continue;
    *at = first;
    group.insert(at + 1, second);
    return;
  }
}

}  // namespace

std::optional<Value> regrouped(Atoms& atoms, const Value& x, const std::vector<Extent>& target) {
  Extent all{1};
  for (const Extent& extent : target) all = all * extent;
  const Group sequence = flat(x.axes);
  if (!(all == atoms.extent(sequence))) throw Refusal{"reshapes to another number of elements"};

  Value y = x;
  y.axes.clear();
  std::vector<Atom> left(sequence.rbegin(), sequence.rend());  // the next atom is the last
  for (const Extent& wanted : target) {
    Group group;
    int64_t need = wanted.n;
    bool needs_batch = wanted.batch;
    while (need != 1 || needs_batch) {
      if (left.empty()) throw Refusal{"reshapes to another number of elements"};
      const Atom atom = left.back();
      const int64_t extent = atoms.extent(atom);
      if (atom == kBatch) {
        if (!needs_batch) throw Refusal{"mixes the samples of a batch"};
        needs_batch = false;
      } else if (extent == 0 || need % extent == 0) {
        need = extent == 0 ? 1 : need / extent;
      } else if (need != 0 && extent % need == 0 && need > 1) {
        const Atom first = atoms.add(need);
        const Atom second = atoms.add(extent / need);
        if (y.storage == x.storage) y.storage = std::make_shared<Storage>(*x.storage);
        replace(y.storage->axes, atom, first, second);
        left.back() = second;
        group.push_back(first);
        need = 1;
        continue;
      } else {
        return std::nullopt;
      }
      group.push_back(atom);
      left.pop_back();
    }
    y.axes.push_back(std::move(group));
  }
  if (!left.empty()) return std::nullopt;
  return y;
}

std::vector<int64_t> permutation(const Atoms& atoms,
                                 const Group& axis,
                                 const Group& held,
                                 int64_t batch) {
  if (axis == held) return {};
  const auto extent = [&](Atom atom) { return atom == kBatch ? batch : atoms.extent(atom); };
  // The stride of each held atom in the file's order.
  std::vector<int64_t> strides;
  int64_t n = 1;
  for (const Atom atom : held) {
    int64_t stride = 1;
    for (auto at = std::find(axis.begin(), axis.end(), atom) + 1; at != axis.end(); ++at)
      stride *= extent(*at);
    strides.push_back(stride);
    n *= extent(atom);
  }
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t place = 0;
    int64_t rest = i;
    for (size_t k = held.size(); k-- > 0;) {
      place += rest % extent(held[k]) * strides[k];
      rest /= extent(held[k]);
    }
    places.push_back(place);
  }
  return places;
}

Groups usual_storage(const Groups& axes, bool channels_last) {
  Groups held = axes;
  if (channels_last && axes.size() > 2) std::rotate(held.begin() + 1, held.begin() + 2, held.end());
  return held;
}

}  // namespace quantrain::onnx
