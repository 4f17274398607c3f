#include "layers/moves.hpp"

#include <algorithm>

#include "framework/autograd/ops/pad.hpp"
#include "framework/autograd/ops/upsample_nearest.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

Upsample::Upsample(Size2d scale) : scale_(scale) { check_upsample("Upsample", scale); }

Tensor Upsample::forward(const Tensor& x) { return upsample_nearest(x, scale_); }

Tensor OnesChannel::forward(const Tensor& x) {
  if (x.rank() < 2) throw ShapeError(where(), "x has no channels: x ", x.shape());
  std::vector<int64_t> before(static_cast<size_t>(x.rank()), 0), after = before;
  after.back() = 1;
  return pad(x, before, after, 1.0f);
}

ZeroPad1d::ZeroPad1d(const Padding1d& padding) : padding_(padding) {
  const int64_t least = std::min(padding.left, padding.right);
  if (least < 0)
    throw ShapeError(
        "ZeroPad1d", "padding of ", least, " is negative: use Slice to remove elements");
}

Tensor ZeroPad1d::forward(const Tensor& x) {
  if (x.rank() != 3) throw ShapeError(where(), "x is not [N, L, C]: x ", x.shape());
  return pad(x, {0, padding_.left, 0}, {0, padding_.right, 0});
}

ZeroPad2d::ZeroPad2d(const Padding2d& padding) : padding_(padding) {
  const int64_t least = std::min({padding.left, padding.right, padding.top, padding.bottom});
  if (least < 0)
    throw ShapeError(
        "ZeroPad2d", "padding of ", least, " is negative: use Slice to remove rows or columns");
}

Tensor ZeroPad2d::forward(const Tensor& x) {
  if (x.rank() != 4) throw ShapeError(where(), "x is not [N, H, W, C]: x ", x.shape());
  return pad(x, {0, padding_.top, padding_.left, 0}, {0, padding_.bottom, padding_.right, 0});
}

Slice::Slice(int axis, SliceOptions options) : axis_(axis), options_(options) {
  check_slice("Slice", options);
  if (axis == 0) throw ShapeError("Slice", "axis 0 is the batch: a layer works on each sample");
}

Tensor Slice::forward(const Tensor& x) {
  if (x.shape().axis(axis_) == 0)
    throw ShapeError(where(), "axis ", axis_, " is the batch: a layer works on each sample");
  return slice(x, axis_, options_);
}

}  // namespace quantrain
