#pragma once

#include <memory>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/integer/gather.hpp"

// Shared by slice, take, upsample_nearest and pad, which move elements and compute nothing.
// docs/quantization.md (23)
namespace quantrain {

/// For each axis: the index in x for each place in y, or -1 where y gets the fill value. An empty
/// list leaves the axis unchanged.
using GatherIndex = std::vector<std::vector<int32_t>>;

/// Base class of the nodes of slice, take, upsample_nearest and pad. The gradient of an element of
/// x is the sum of the gradients at its places in y, added in ascending order of the places.
class GatherNode : public Node {
 public:
  explicit GatherNode(std::shared_ptr<const integer::Gather> gather) : gather_(std::move(gather)) {}
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override;
  void refuse_integers(const std::string& layer) const override;

 private:
  // Moves the elements of one sample, or of the whole batch if they move along the batch axis.
  // Null: nothing moves, or there are no elements.
  std::shared_ptr<const integer::Gather> gather_;
};

struct Gathered {
  Tensor y;
  std::shared_ptr<const integer::Gather> gather;  ///< for the constructor of GatherNode
};
/// Moves the elements of x to their places in y, which has the given shape. Codes with per-tensor
/// parameters stay codes if the batch axis is unchanged, and if a code represents the fill value
/// exactly or no place gets it; otherwise y holds floats. The caller must have checked the length
/// of each list with check_places().
Gathered gathered(const Tensor& x, const Shape& shape, const GatherIndex& index, float fill = 0.0f);

/// Throws: ShapeError naming the operation if there are 2^31 places or more.
void check_places(std::string_view operation, int64_t places);

}  // namespace quantrain
