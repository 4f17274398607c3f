#include "framework/autograd/ops/take.hpp"

#include "framework/autograd/ops/gather.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

class TakeNode : public GatherNode {
 public:
  TakeNode(std::shared_ptr<const integer::Gather> gather, int axis, std::vector<int64_t> indices)
      : GatherNode(std::move(gather)), axis_(axis), indices_(std::move(indices)) {}
  std::string_view type() const override { return "take"; }
  Attributes attributes() const override {
    return {{"axis", int64_t{axis_}}, {"indices", indices_}};
  }

 private:
  int axis_;
  std::vector<int64_t> indices_;
};

}  // namespace

Tensor take(const Tensor& x, int axis, const std::vector<int64_t>& indices) {
  axis = x.shape().axis(axis);
  const int64_t extent = x.dim(axis);
  check_places("take", extent);
  check_places("take", static_cast<int64_t>(indices.size()));
  std::vector<int64_t> extents(x.shape().begin(), x.shape().end());
  extents[static_cast<size_t>(axis)] = static_cast<int64_t>(indices.size());
  GatherIndex index(extents.size());
  std::vector<int32_t>& list = index[static_cast<size_t>(axis)];
  for (const int64_t i : indices) {
    if (i < -extent || i >= extent)
      throw ShapeError("take", "index ", i, " is outside axis ", axis, " of x ", x.shape());
    list.push_back(static_cast<int32_t>(i < 0 ? i + extent : i));
  }
  const Shape shape(extents);
  if (shape.elements() == 0) index.assign(extents.size(), {});  // nothing moves
  Gathered result = gathered(x, shape, index);
  return record<TakeNode>(std::move(result.y), {x}, std::move(result.gather), axis, indices);
}

}  // namespace quantrain
