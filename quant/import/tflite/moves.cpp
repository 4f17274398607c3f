#include <algorithm>
#include <cmath>
#include <numeric>

#include "quant/import/tflite/windows.hpp"

// PAD, RESHAPE, SQUEEZE, TRANSPOSE, STRIDED_SLICE and RESIZE_NEAREST_NEIGHBOR.
// docs/quantization.md (23)
namespace quantrain::tflite {
namespace {

using Index = std::vector<std::vector<int32_t>>;

/// Emits y[i, j, ...] = x[index[0][i], index[1][j], ...]. An empty list leaves its axis as it is.
void emit_gather(Lowering& l, const Dims& x, const Index& index, int32_t fill) {
  if (!l.keeps_params()) throw Refusal{"that changes the scale or zero point"};
  auto op = integer::Gather::make(Shape(std::span<const int64_t>(x)), index, fill);
  if (op.axes.empty()) return l.emit_view();
  l.emit(std::move(op), {l.value(0)});
}

/// Says before a list of indices is made that it will take memory.
void spend_indices(Lowering& l, int64_t count) {
  if (count < 0 || count > integer::kMostElements) throw Refusal{"of too many elements"};
  l.spend(count * int64_t{2 * sizeof(int32_t)});
}

std::vector<int32_t> counted(int64_t from, int64_t step, int64_t count) {
  std::vector<int32_t> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(static_cast<int32_t>(from + i * step));
  return list;
}

}  // namespace

void lower_pad(Lowering& l) {
  const Dims x = l.input_dims(0);
  const QParams params = l.input_params(0);
  const std::vector<int64_t> pads = l.constant(1);
  if (pads.size() != 2 * x.size()) throw Refusal{"with paddings of another number of axes"};
  int32_t fill = stored_zero_point(params);
  if (l.operation().kind == Kind::kPadV2 && l.has_input(2)) {
    const std::vector<int32_t> code = l.constant_codes(2);
    if (code.size() != 1 || !(l.input_params(2) == params))
      throw Refusal{"with a value that is no code of its input"};
    fill = code[0];
  }
  for (const int64_t pad : pads) {
    if (pad < 0 || pad > integer::kMostExtent)
      throw Refusal{"with a padding of " + std::to_string(pad)};
  }
  const bool of_image = x.size() == 4 && pads[0] + pads[1] + pads[6] + pads[7] == 0 &&
                        fill == stored_zero_point(params) && l.keeps_params();
  if (of_image && l.leave_to_convolution({l.input_index(0), pads[2], pads[3], pads[4], pads[5]})) {
    return;
  }
  Index index(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    if (pads[2 * k] + pads[2 * k + 1] == 0) continue;
    spend_indices(l, x[k] + pads[2 * k] + pads[2 * k + 1]);
    index[k] = counted(0, 1, x[k]);
    index[k].insert(index[k].begin(), static_cast<size_t>(pads[2 * k]), -1);
    index[k].insert(index[k].end(), static_cast<size_t>(pads[2 * k + 1]), -1);
  }
  emit_gather(l, x, index, fill);
}

void lower_reshape(Lowering& l) {
  l.input_params(0);
  l.emit_view();
}

void lower_transpose(Lowering& l) {
  const Dims x = l.input_dims(0);
  const std::vector<int64_t> order = l.constant(1);
  std::vector<bool> seen(x.size(), false);
  for (const int64_t axis : order) seen[static_cast<size_t>(l.axis(axis, x))] = true;
  if (order.size() != x.size() || std::find(seen.begin(), seen.end(), false) != seen.end())
    throw Refusal{"with an order that is no permutation"};
  // Axes of extent 1 may move without moving any code.
  std::vector<size_t> from, to;
  for (size_t k = 0; k < x.size(); ++k) {
    const auto axis = static_cast<size_t>(l.axis(order[k], x));
    if (x[k] > 1) from.push_back(k);
    if (x[axis] > 1) to.push_back(axis);
  }
  if (from == to) return lower_reshape(l);
  // All axes but those that stay at the end become one axis, with a list of its elements.
  int64_t run = 1;
  while (from.back() == to.back()) {
    run *= x[from.back()];
    from.pop_back();
    to.pop_back();
  }
  std::vector<int64_t> stride(x.size(), 1);
  int64_t extent = 1;
  for (size_t k = from.size(); k-- > 0;) {
    stride[from[k]] = extent;
    extent *= x[from[k]];
  }
  spend_indices(l, extent);
  std::vector<int32_t> list{0};
  for (const size_t axis : to) {
    std::vector<int32_t> longer;
    for (const int32_t first : list) {
      for (int64_t i = 0; i < x[axis]; ++i)
        longer.push_back(static_cast<int32_t>(first + i * stride[axis]));
    }
    list = std::move(longer);
  }
  emit_gather(l, {extent, run}, {list, {}}, 0);
}

void lower_strided_slice(Lowering& l) {
  const Dims x = l.input_dims(0);
  l.input_params(0);
  const std::vector<int64_t> begin = l.constant(1), end = l.constant(2), step = l.constant(3);
  if (begin.size() > x.size() || end.size() != begin.size() || step.size() != begin.size())
    throw Refusal{"with bounds of another number of axes"};
  enum { kBeginMask = 0, kEndMask = 1, kEllipsis = 2, kNewAxis = 3, kShrink = 4, kOffset = 5 };
  const auto mask = [&](int field) { return l.options().get<int32_t>(field, 0); };
  if (mask(kEllipsis) != 0 || mask(kNewAxis) != 0 || l.options().get<uint8_t>(kOffset, 0) != 0)
    throw Refusal{"with an ellipsis, a new axis or ends that are offsets"};
  Index index(x.size());
  for (size_t k = 0; k < begin.size(); ++k) {
    const auto has = [&](int field) { return (mask(field) >> k & 1) != 0; };
    const int64_t extent = x[k];
    // An index from the end is negative. Indices beyond the axis are cut off.
    const auto place = [&](int64_t i) {
      const int64_t clamped = std::clamp<int64_t>(i, -extent - 1, extent);
      return clamped < 0 ? clamped + extent : clamped;
    };
    const int64_t by = has(kShrink) ? 1 : step[k];
    if (by == 0 || std::abs(by) > integer::kMostElements)
      throw Refusal{"with a stride of " + std::to_string(by)};
    const int64_t first =
        has(kBeginMask) && !has(kShrink)
            ? (by > 0 ? 0 : extent - 1)
            : std::clamp<int64_t>(place(begin[k]), by > 0 ? 0 : -1, by > 0 ? extent : extent - 1);
    const int64_t last =
        has(kShrink) ? first + 1
        : has(kEndMask)
            ? (by > 0 ? extent : -1)
            : std::clamp<int64_t>(place(end[k]), by > 0 ? 0 : -1, by > 0 ? extent : extent - 1);
    const int64_t count = by > 0 ? (last - first + by - 1) / by : (first - last - by - 1) / -by;
    if (count < 1 || first < 0 || first >= extent) throw Refusal{"that takes no element"};
    if (count == extent && by == 1) continue;
    spend_indices(l, count);
    index[k] = counted(first, by, count);
  }
  emit_gather(l, x, index, 0);
}

void lower_resize(Lowering& l) {
  const Dims x = l.image_dims(l.input(0));
  const Dims y = l.image_dims(l.output());
  l.input_params(0);
  const std::vector<int64_t> size = l.constant(1);
  if (size.size() != 2 || y[1] != size[0] || y[2] != size[1] || y[3] != x[3])
    throw Refusal{"to another size than that of its output"};
  const bool aligned = l.options().get<uint8_t>(0, 0) != 0;
  const bool centers = l.options().get<uint8_t>(1, 0) != 0;
  Index index(4);
  for (const size_t k : {size_t{1}, size_t{2}}) {
    spend_indices(l, y[k]);
    // In float32, as TFLite computes it.
    const bool ends = aligned && y[k] > 1;
    const float scale = ends ? static_cast<float>(x[k] - 1) / static_cast<float>(y[k] - 1)
                             : static_cast<float>(x[k]) / static_cast<float>(y[k]);
    for (int64_t i = 0; i < y[k]; ++i) {
      const float at = (static_cast<float>(i) + (centers ? 0.5f : 0.0f)) * scale;
      const auto from = static_cast<int64_t>(aligned ? std::round(at) : std::floor(at));
      index[k].push_back(static_cast<int32_t>(std::clamp<int64_t>(from, 0, x[k] - 1)));
    }
  }
  emit_gather(l, x, index, 0);
}

}  // namespace quantrain::tflite
