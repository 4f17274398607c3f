#include "layers/reduction.hpp"

#include <algorithm>

#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/autograd/ops/reshape.hpp"
#include "framework/core/error.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain {
namespace {

void check_axes(std::string_view where, const std::vector<int>& axes) {
  if (axes.empty()) throw ShapeError(where, "there is no axis to reduce: name one, such as 1");
  if (std::find(axes.begin(), axes.end(), 0) != axes.end())
    throw ShapeError(where, "axis 0 is the batch: a layer works on each sample");
}

/// The extents of an integer pool are limited. The reader of saved networks checks the same limit.
void check_integer_extents(const std::string& where,
                           const Tensor& x,
                           const std::vector<int64_t>& image) {
  const char* const parts[] = {
      "the axes before the reduced axes", "the reduced axes", "the axes after the reduced axes"};
  for (size_t part = 0; part < 3; ++part) {
    if (image[part + 1] <= integer::kMostExtent) continue;
    throw ShapeError(where,
                     parts[part],
                     " have ",
                     image[part + 1],
                     " elements in each sample; an integer network allows at most ",
                     integer::kMostExtent,
                     ": x ",
                     x.shape(),
                     "; first reduce x by a pool or a convolution with a stride");
  }
}

/// Reduces x [N, H..., K..., C...] along the axes K by a pool. H are the axes before them and C the
/// axes after them. x is reshaped to an image [N, H, K, C], and each row is one window.
template <class Pool>
Tensor reduced(const std::string& where,
               const Tensor& x,
               const std::vector<int>& axes,
               const ReductionOptions& options,
               const Pool& pool) {
  check_axes(where, axes);  // a moved-from layer has no axes
  std::vector<int> sorted;
  for (const int axis : axes) {
    if (axis < -x.rank() || axis >= x.rank())
      throw ShapeError(where, "there is no axis ", axis, ": x ", x.shape());
    sorted.push_back(x.shape().axis(axis));
  }
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() == 0)
    throw ShapeError(where, "axis ", -x.rank(), " is the batch: a layer works on each sample");
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] == sorted[i - 1] + 1) continue;
    if (sorted[i] == sorted[i - 1]) throw ShapeError(where, "axis ", sorted[i], " is listed twice");
    throw ShapeError(
        where,
        "axes ",
        sorted[i - 1],
        " and ",
        sorted[i],
        " are not next to each other: use a layer for each, with keepdim in the first");
  }
  std::vector<int64_t> image{x.dim(0), 1, 1, 1};
  std::vector<int64_t> extents{x.dim(0)};
  for (int axis = 1; axis < x.rank(); ++axis) {
    const bool inside = axis >= sorted.front() && axis <= sorted.back();
    image[axis < sorted.front() ? 1 : inside ? 2 : 3] *= x.dim(axis);
    if (!inside) extents.push_back(x.dim(axis));
    if (inside && options.keepdim) extents.push_back(1);
  }
  if (image[2] == 0) throw ShapeError(where, "no elements to reduce: x ", x.shape());
  if (x.kind() == ValueKind::kCodes) check_integer_extents(where, x, image);
  const Tensor y = pool(reshape(x, Shape(image)), Pool2dOptions{.kernel = {1, image[2]}});
  return reshape(y, Shape(extents));
}

}  // namespace

Mean::Mean(std::vector<int> axes, ReductionOptions options)
    : axes_(std::move(axes)), options_(options) {
  check_axes("Mean", axes_);
}

Tensor Mean::forward(const Tensor& x) { return reduced(where(), x, axes_, options_, avg_pool2d); }

Max::Max(std::vector<int> axes, ReductionOptions options)
    : axes_(std::move(axes)), options_(options) {
  check_axes("Max", axes_);
}

Tensor Max::forward(const Tensor& x) { return reduced(where(), x, axes_, options_, max_pool2d); }

}  // namespace quantrain
