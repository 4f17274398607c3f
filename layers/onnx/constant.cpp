#include "layers/onnx/constant.hpp"

#include <algorithm>

#include "layers/onnx/elements.hpp"

namespace quantrain::onnx {

int64_t Constant::elements() const {
  return static_cast<int64_t>(std::visit([](const auto& all) { return all.size(); }, values));
}

std::vector<float> Constant::floats() const {
  if (const auto* const floats = std::get_if<std::vector<float>>(&values)) return *floats;
  std::vector<float> all;
  for (const int64_t n : integers()) all.push_back(static_cast<float>(n));
  return all;
}

std::vector<int64_t> Constant::integers() const {
  std::vector<int64_t> all;
  for (const Extent& extent : extents()) {
    if (extent.batch) throw Refusal{"depends on the number of samples in a batch"};
    all.push_back(extent.n);
  }
  return all;
}

const std::vector<Extent>& Constant::extents() const& {
  if (const auto* const extents = std::get_if<std::vector<Extent>>(&values)) return *extents;
  throw Refusal{"needs integers, but has floats"};
}

Constant to_constant(const StoredTensor& tensor) {
  if (is_float(tensor.type)) return {tensor.dims, floats_of(tensor)};
  std::vector<Extent> extents;
  for (const int64_t n : integers_of(tensor)) extents.push_back({n});
  return {tensor.dims, std::move(extents)};
}

void FoldBudget::take(int64_t elements) {
  if (elements < 0 || elements > left_)
    throw Refusal{
        "constants that are too large, or read too often, for a file of this size "
        "(OnnxOptions::described_constants is the limit)"};
  left_ -= elements;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t nonzero = 1;
  bool is_empty = false;
  for (const int64_t extent : dims) {
    if (extent < 0) throw Refusal{"a shape has a negative extent"};
    is_empty = is_empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(nonzero, extent, &nonzero))
      throw Refusal{"a shape overflows"};
  }
  return is_empty ? 0 : nonzero;
}

int checked_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw Refusal{"axis " + std::to_string(axis) + " does not exist"};
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> checked_axes(std::vector<int64_t> axes, int64_t rank) {
  std::vector<int> checked;
  for (const int64_t axis : axes) checked.push_back(checked_axis(axis, rank));
  std::sort(checked.begin(), checked.end());
  if (std::adjacent_find(checked.begin(), checked.end()) != checked.end())
    throw Refusal{"an axis is named twice"};
  return checked;
}

SliceRange slice_range(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (step == 0) throw Refusal{"step 0"};
  if (extent == 0) return {0, step, 0};
  // Steps beyond the extent take one element, as the extent itself does.
  step = std::clamp(step, -extent - 1, extent + 1);
  const auto place = [&](int64_t at, int64_t least, int64_t most) {
    return std::clamp(at < 0 ? at + extent : at, least, most);
  };
  const int64_t first = step > 0 ? place(start, 0, extent) : place(start, 0, extent - 1);
  const int64_t last = step > 0 ? place(end, 0, extent) : place(end, -1, extent - 1);
  const int64_t span = step > 0 ? last - first : first - last;
  const int64_t stride = step > 0 ? step : -step;
  return {first, step, span <= 0 ? 0 : (span + stride - 1) / stride};
}

std::vector<int64_t> split_sizes(const Node& node, int64_t extent, std::vector<int64_t> sizes) {
  const auto parts = static_cast<int64_t>(node.outputs.size());
  if (sizes.empty()) {
    if (node.get("num_outputs", parts) != parts)
      throw Refusal{"num_outputs differs from its outputs"};
    const int64_t size = (extent + parts - 1) / parts;
    if (node.find("num_outputs") == nullptr && extent % parts != 0)
      throw Refusal{"parts of unequal size without their sizes"};
    for (int64_t left = extent; static_cast<int64_t>(sizes.size()) < parts; left -= sizes.back())
      sizes.push_back(std::min(size, left));
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent - sum) throw Refusal{"its sizes do not fit the axis"};
    sum += size;
  }
  if (sum != extent || static_cast<int64_t>(sizes.size()) != parts)
    throw Refusal{"its sizes do not fit the axis"};
  return sizes;
}

namespace {

int64_t checked(bool overflows, int64_t n) {
  if (overflows) throw Refusal{"an integer overflows"};
  return n;
}

}  // namespace

Extent operator*(const Extent& a, const Extent& b) {
  int64_t n = 0;
  const bool overflows = __builtin_mul_overflow(a.n, b.n, &n);
  if (a.batch && b.batch) throw Refusal{"squares the number of samples in a batch"};
  return {checked(overflows, n), (a.batch || b.batch) && n != 0};
}

Extent operator+(const Extent& a, const Extent& b) {
  if (a.n == 0) return b;
  if (b.n == 0) return a;
  if (a.batch != b.batch) throw Refusal{"adds to the number of samples in a batch"};
  int64_t n = 0;
  const bool overflows = __builtin_add_overflow(a.n, b.n, &n);
  return {checked(overflows, n), a.batch && n != 0};
}

Extent operator-(const Extent& a, const Extent& b) { return a + b * Extent{-1}; }

Extent operator/(const Extent& a, const Extent& b) {
  if (b.n == 0) throw Refusal{"divides by 0"};
  if (b.n == -1) return a * Extent{-1};  // also for the least integer
  if (b.batch && (!a.batch || a.n % b.n != 0)) throw Refusal{"divides by the number of samples"};
  if (a.batch && a.n % b.n != 0) throw Refusal{"divides the number of samples in a batch"};
  return {a.n / b.n, a.batch && !b.batch};
}

}  // namespace quantrain::onnx
