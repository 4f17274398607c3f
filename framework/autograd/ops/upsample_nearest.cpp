#include "framework/autograd/ops/upsample_nearest.hpp"

#include <algorithm>
#include <limits>

#include "framework/autograd/ops/gather.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

class UpsampleNearestNode : public GatherNode {
 public:
  UpsampleNearestNode(std::shared_ptr<const integer::Gather> gather, Size2d scale)
      : GatherNode(std::move(gather)), scale_(scale) {}
  std::string_view type() const override { return "upsample_nearest"; }
  Attributes attributes() const override {
    return {{"scale", std::vector<int64_t>{scale_.h, scale_.w}}};
  }

 private:
  Size2d scale_;
};

}  // namespace

void check_upsample(std::string_view where, Size2d scale) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::min(scale.h, scale.w) < 1 || std::max(scale.h, scale.w) > kMost)
    throw ShapeError(where, "scale is ", scale, ", expected whole numbers from 1 to ", kMost);
}

Tensor upsample_nearest(const Tensor& x, Size2d scale) {
  check_upsample("upsample_nearest", scale);
  if (x.rank() != 4 && x.rank() != 3) {
    throw ShapeError("upsample_nearest", "x is neither [N, H, W, C] nor [N, L, C]: x ", x.shape());
  }
  if (x.rank() == 3 && scale.w != 1) {
    throw ShapeError("upsample_nearest",
                     "x ",
                     x.shape(),
                     " has one axis to scale, got ",
                     scale,
                     ": write {",
                     scale.h,
                     ", 1}");
  }
  std::vector<int64_t> extents(x.shape().begin(), x.shape().end());
  const int64_t scales[] = {scale.h, scale.w};
  for (size_t k = 1; k + 1 < extents.size(); ++k) {
    if (__builtin_mul_overflow(extents[k], scales[k - 1], &extents[k]))
      throw ShapeError("upsample_nearest", "x ", x.shape(), " is too long at scale ", scale);
  }
  const Shape shape(extents);
  GatherIndex index(extents.size());
  for (size_t k = 1; x.elements() > 0 && k + 1 < extents.size(); ++k) {
    if (scales[k - 1] == 1) continue;
    check_places("upsample_nearest", extents[k]);
    for (int64_t i = 0; i < extents[k]; ++i)
      index[k].push_back(static_cast<int32_t>(i / scales[k - 1]));
  }
  Gathered result = gathered(x, shape, index);
  return record<UpsampleNearestNode>(std::move(result.y), {x}, std::move(result.gather), scale);
}

}  // namespace quantrain
