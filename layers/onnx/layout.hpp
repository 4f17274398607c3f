#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/onnx/constant.hpp"

// Where the elements of a value lie. ONNX's images are [N, C, H, W], ours [N, H, W, C]; exporters
// write transposes and reshapes between their frameworks' layouts and ONNX's. Both are labels here:
// each axis of a value, as the file sees it, is a group of atoms, and the tensor of our network
// holds the same atoms in an order of its own. A transpose reorders the groups, a reshape regroups
// the atoms, and neither needs a layer. A layer that moves elements is added only where an operator
// needs an order that the tensor does not have.
namespace quantrain::onnx {

/// A factor of an axis: its number in the table of atoms.
using Atom = int;
/// The samples of a batch, for all values of a network.
inline constexpr Atom kBatch = 0;
/// An axis: its atoms, outermost first. Extents of 1 have no atom.
using Group = std::vector<Atom>;
using Groups = std::vector<Group>;

class Atoms {
 public:
  Atom add(int64_t extent);
  /// The group of a new axis: no atom if the extent is 1.
  Group group(int64_t extent);
  /// The largest extent of all.
  int64_t largest() const { return *std::max_element(extents_.begin(), extents_.end()); }
  /// The number of elements; of kBatch, 1.
  int64_t extent(Atom atom) const { return extents_[static_cast<size_t>(atom)]; }
  /// Product of the extents, times the batch if kBatch is among them.
  Extent extent(const Group& group) const;
  /// Product of the extents without the batch.
  int64_t size(const Group& group) const { return extent(group).n; }

 private:
  std::vector<int64_t> extents_{1};
};

Group flat(const Groups& groups);

/// How a tensor of our network holds its elements. All values that a chain of functions computes
/// from a network's input share this, so that the first operator that needs an order decides the
/// input's.
struct Storage {
  Groups axes;
  bool is_settled = true;
};

/// A value of the ONNX graph: a constant, or what a step of our network computes.
struct Value {
  ConstantPtr constant;  ///< null: not a constant
  std::string step{};
  std::shared_ptr<Storage> storage{};
  Groups axes{};         ///< as the file sees them
  bool is_lost = false;  ///< depends on a node that cannot be imported

  int64_t rank() const { return static_cast<int64_t>(axes.size()); }
};

/// The value with its axes split and merged to these extents. Atoms that do not fit an extent are
/// split in two, here and in the storage. Returns nothing if elements have to move first.
/// Throws: Refusal if the sizes differ, or if samples of a batch would be mixed.
std::optional<Value> regrouped(Atoms& atoms, const Value& x, const std::vector<Extent>& target);

/// The place in the file's order for each place in the tensor's order of the atoms of an axis;
/// empty if the orders are equal. `held` has the same atoms as `axis`; kBatch has `batch` elements.
std::vector<int64_t> permutation(const Atoms& atoms,
                                 const Group& axis,
                                 const Group& held,
                                 int64_t batch = 1);

/// The usual storage of a value that no operator has decided: images and signals with their
/// channels last where `channels_last`, else the file's order.
Groups usual_storage(const Groups& axes, bool channels_last);

}  // namespace quantrain::onnx
