#include "framework/autograd/ops/pad.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

namespace quantrain {
namespace {

constexpr int64_t kGrain = 32768;  // elements of a block

using Extents = std::vector<int64_t>;

// Calls copy(row of the inner array, row of the outer array) for every innermost row of an array
// that lies at `before` in a larger one; rows are offsets of their first elements.
template <class Copy>
void for_each_row(const Shape& inner, const Shape& outer, const Extents& before, const Copy& copy) {
  if (inner.elements() == 0) return;
  const int64_t length = inner.back();
  parallel_for(inner.elements() / length,
               std::max<int64_t>(1, kGrain / length),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   int64_t offset = before.back();
                   int64_t stride = outer.back();
                   int64_t rest = row;
                   for (int axis = inner.rank() - 2; axis >= 0; --axis) {
                     offset += (rest % inner[axis] + before[static_cast<size_t>(axis)]) * stride;
                     stride *= outer[axis];
                     rest /= inner[axis];
                   }
                   copy(row * length, offset);
                 }
               });
}

class PadNode : public Node {
 public:
  PadNode(Extents before, Extents after, float value)
      : before_(std::move(before)), after_(std::move(after)), value_(value) {}
  std::string_view type() const override { return "pad"; }
  Attributes attributes() const override {
    Extents pads = before_;
    pads.insert(pads.end(), after_.begin(), after_.end());
    return {{"pads", pads}, {"value", double{value_}}};
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Shape& shape = input(0).shape();
    if (shape.rank() == 0) return {grad_y};
    Tensor grad_x = Tensor::empty(shape);
    const Floats from = grad_y.floats();
    float* const to = grad_x.mutable_data();
    for_each_row(shape, grad_y.shape(), before_, [&](int64_t inner, int64_t outer) {
      std::copy_n(from.data() + outer, shape.back(), to + inner);
    });
    return {grad_x};
  }

 private:
  Extents before_;
  Extents after_;
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
    throw ShapeError("pad", before.size(), " and ", after.size(), " numbers for shape ", shape);
  }
  Extents extents(shape.begin(), shape.end());
  for (size_t i = 0; i < rank; ++i) {
    if (before[i] < 0 || after[i] < 0) {
      throw ShapeError(
          "pad", "padding of axis ", i, " is negative: ", std::min(before[i], after[i]));
    }
    int64_t padding = 0;
    if (__builtin_add_overflow(before[i], after[i], &padding) ||
        __builtin_add_overflow(extents[i], padding, &extents[i])) {
      throw ShapeError(
          "pad", "axis ", i, " of ", shape, " is too long with ", before[i], " and ", after[i]);
    }
  }
  Tensor y = Tensor::full(Shape(extents), value);
  const Floats from = x.floats();
  float* const to = y.mutable_data();
  if (rank == 0) {
    *to = *from.data();
  } else {
    for_each_row(shape, y.shape(), before, [&](int64_t inner, int64_t outer) {
      std::copy_n(from.data() + inner, shape.back(), to + outer);
    });
  }
  return record<PadNode>(y, {x}, before, after, value);
}

Tensor pad2d(const Tensor& x, Size2d padding, float value) {
  if (x.rank() != 4) throw ShapeError("pad", "needs [N, H, W, C], got shape ", x.shape());
  const Extents both{0, padding.h, padding.w, 0};
  return pad(x, both, both, value);
}

}  // namespace quantrain
