#include "framework/autograd/ops/pad.hpp"

#include <algorithm>
#include <numeric>

#include "framework/autograd/ops/gather.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

class PadNode : public GatherNode {
 public:
  PadNode(std::shared_ptr<const integer::Gather> gather,
          std::vector<int64_t> before,
          std::vector<int64_t> after,
          float value)
      : GatherNode(std::move(gather)),
        before_(std::move(before)),
        after_(std::move(after)),
        value_(value) {}
  std::string_view type() const override { return "pad"; }
  Attributes attributes() const override {
    std::vector<int64_t> pads = before_;
    pads.insert(pads.end(), after_.begin(), after_.end());
    return {{"pads", pads}, {"value", double{value_}}};
  }

 private:
  std::vector<int64_t> before_;
  std::vector<int64_t> after_;
  float value_;
};

}  // namespace

Tensor pad(const Tensor& x,
           const std::vector<int64_t>& before,
           const std::vector<int64_t>& after,
           float value) {
  const Shape& shape = x.shape();
  const auto rank = static_cast<size_t>(shape.rank());
  if (before.size() != rank || after.size() != rank) {
    throw ShapeError("pad",
                     "needs a padding before and after each axis of ",
                     shape,
                     ", got ",
                     before.size(),
                     " before and ",
                     after.size(),
                     " after");
  }
  std::vector<int64_t> extents(shape.begin(), shape.end());
  for (size_t i = 0; i < rank; ++i) {
    if (before[i] < 0 || after[i] < 0) {
      throw ShapeError(
          "pad", "padding of axis ", i, " is negative: ", std::min(before[i], after[i]));
    }
    int64_t padding = 0;
    if (__builtin_add_overflow(before[i], after[i], &padding) ||
        __builtin_add_overflow(extents[i], padding, &extents[i])) {
      throw ShapeError("pad",
                       "axis ",
                       i,
                       " of ",
                       shape,
                       " is too long with padding ",
                       before[i],
                       " and ",
                       after[i]);
    }
  }
  const Shape padded(extents);
  GatherIndex index(rank);
  for (size_t i = 0; x.elements() > 0 && i < rank; ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    check_places("pad", extents[i]);
    index[i].assign(static_cast<size_t>(extents[i]), -1);
    const auto first = index[i].begin() + before[i];
    std::iota(first, first + shape[static_cast<int>(i)], 0);
  }
  Gathered result = gathered(x, padded, index, value);
  return record<PadNode>(std::move(result.y), {x}, std::move(result.gather), before, after, value);
}

Tensor pad2d(const Tensor& x, Size2d padding, float value) {
  if (x.rank() != 4) throw ShapeError("pad", "needs [N, H, W, C], got shape ", x.shape());
  const std::vector<int64_t> both{0, padding.h, padding.w, 0};
  return pad(x, both, both, value);
}

}  // namespace quantrain
