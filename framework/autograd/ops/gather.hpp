#pragma once

#include <memory>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/integer/gather.hpp"

// What slice, upsample_nearest and pad share: elements that move, and are not computed.
// docs/quantization.md (23)
namespace quantrain {

/// For each axis of x, the index of x at each place of y, -1 for a fill; an empty list is an axis
/// that stays.
using GatherIndex = std::vector<std::vector<int32_t>>;

/// A node of such an operation: the gradient of each element of x is the sum of those of its places
/// in y, in ascending order.
class GatherNode : public Node {
 public:
  explicit GatherNode(std::shared_ptr<const integer::Gather> gather) : gather_(std::move(gather)) {}
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override;
  void refuse_integers(const std::string& layer) const override;

 private:
  // Of a sample, or of the batch where that moves. Null: nothing moves, or there is no element.
  std::shared_ptr<const integer::Gather> gather_;
};

struct Gathered {
  Tensor y;
  std::shared_ptr<const integer::Gather> gather;  ///< for the node
};
/// y of this shape. Codes with per-tensor parameters stay codes where the batch stays and the fill
/// is the value of a code; else y holds floats.
/// The caller has checked the places of each list.
Gathered gathered(const Tensor& x, const Shape& shape, const GatherIndex& index, float fill = 0.0f);

/// Throws: ShapeError naming the operation if a list of so many places could not be made.
void check_places(std::string_view operation, int64_t places);

}  // namespace quantrain
