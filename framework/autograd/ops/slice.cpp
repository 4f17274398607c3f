#include "framework/autograd/ops/slice.hpp"

#include <algorithm>
#include <cstdlib>

#include "framework/autograd/ops/gather.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

struct Taken {
  int64_t begin, step, count;
};

class SliceNode : public GatherNode {
 public:
  SliceNode(std::shared_ptr<const integer::Gather> gather, int axis, const Taken& range)
      : GatherNode(std::move(gather)), axis_(axis), range_(range) {}
  std::string_view type() const override { return "slice"; }
  Attributes attributes() const override {
    return {{"axis", int64_t{axis_}},
            {"begin", range_.begin},
            {"step", range_.step},
            {"count", range_.count}};
  }

 private:
  int axis_;
  Taken range_;
};

Taken range_of(int64_t extent, const SliceOptions& o) {
  // Positions outside the axis are clamped: to [0, extent], or to [-1, extent - 1] if the step is
  // negative.
  const int64_t lo = o.step > 0 ? 0 : -1;
  const int64_t hi = o.step > 0 ? extent : extent - 1;
  const auto place = [&](const std::optional<int64_t>& at, int64_t otherwise) {
    if (!at) return otherwise;
    return std::clamp(*at < 0 ? *at + extent : *at, lo, hi);
  };
  const int64_t begin = place(o.begin, o.step > 0 ? lo : hi);
  const int64_t end = place(o.end, o.step > 0 ? hi : lo);
  const int64_t distance = o.step > 0 ? end - begin : begin - end;
  if (distance <= 0) return {begin, o.step, 0};
  // abs(-2^63) would overflow. A step longer than the axis acts like a step of the axis's length.
  const int64_t stride = o.step > -extent ? std::abs(o.step) : extent;
  return {begin, o.step, (distance - 1) / stride + 1};
}

}  // namespace

void check_slice(std::string_view where, const SliceOptions& options) {
  if (options.step == 0)
    throw ShapeError(where,
                     "the step is 0, expected for example 1 (every element), 2 (every second one) "
                     "or -1 (reverse order)");
}

Tensor slice(const Tensor& x, int axis, const SliceOptions& options) {
  check_slice("slice", options);
  axis = x.shape().axis(axis);
  const int64_t extent = x.dim(axis);
  const Taken range = range_of(extent, options);
  std::vector<int64_t> extents(x.shape().begin(), x.shape().end());
  extents[static_cast<size_t>(axis)] = range.count;
  GatherIndex index(extents.size());
  if (x.elements() > 0 && (range.count < extent || range.step != 1)) {
    check_places("slice", extent);
    std::vector<int32_t>& list = index[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < range.count; ++i)
      list.push_back(static_cast<int32_t>(range.begin + i * range.step));
  }
  Gathered result = gathered(x, Shape(extents), index);
  return record<SliceNode>(std::move(result.y), {x}, std::move(result.gather), axis, range);
}

}  // namespace quantrain
