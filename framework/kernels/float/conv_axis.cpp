#include "framework/kernels/float/conv_axis.hpp"

#include <algorithm>

namespace quantrain::kernels {
namespace {

/// Adds position part.result, whose part.taps taps from part.first_tap on see the source from
/// part.source on. If all of these are inside, also adds the next positions, up to `left` in all,
/// whose taps are. Returns how many were added.
int64_t add_positions(std::vector<AxisPart>& parts,
                      AxisPart part,
                      int64_t left,
                      int64_t source_size) {
  const int64_t first = std::clamp<int64_t>(-part.source, 0, part.taps);
  const int64_t end = std::clamp(source_size - part.source, first, part.taps);
  const int64_t behind = source_size - part.source - part.taps;
  part.count = part.source >= 0 && behind >= 0 ? std::min(left, behind / part.source_step + 1) : 1;
  part.source = end > first ? part.source + first : 0;
  part.taps = end - first;
  part.first_tap += first * part.tap_step;
  if (!parts.empty()) {
    AxisPart& last = parts.back();
    if (part.result == last.result + last.count * last.result_step &&
        part.first_tap == last.first_tap && part.taps == last.taps) {
      last.count += part.count;
      return part.count;
    }
  }
  parts.push_back(part);
  return part.count;
}

}  // namespace

std::vector<AxisPart> forward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(2 * kernel));
  for (int64_t i = 0; i < result_size;) {
    i += add_positions(
        parts, {i, 1, i * stride - pad, stride, 0, kernel, 0, 1}, result_size - i, size);
  }
  return parts;
}

std::vector<AxisPart> forward_taps(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(kernel));
  for (int64_t t = 0; t < kernel; ++t) {
    // i * stride >= pad - t, and i * stride < size + pad - t.
    const auto positions = [&](int64_t end) {
      return std::clamp<int64_t>((end + stride - 1) / stride, 0, result_size);
    };
    const int64_t first = positions(std::max<int64_t>(pad - t, 0));
    const int64_t end = positions(std::max<int64_t>(size + pad - t, 0));
    if (first >= end) continue;
    if (!parts.empty()) {
      AxisPart& last = parts.back();
      if (last.result == first && last.count == end - first && t == last.first_tap + last.taps) {
        ++last.taps;
        continue;
      }
    }
    parts.push_back({first, 1, first * stride - pad + t, stride, end - first, 1, t, 1});
  }
  return parts;
}

std::vector<AxisPart> backward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(2 * kernel));
  for (int64_t start = 0; start < std::min(stride, result_size); ++start) {
    const int64_t residue = (start + pad) % stride;
    const int64_t taps = residue < kernel ? (kernel - residue + stride - 1) / stride : 0;
    const int64_t first_tap = kernel - 1 - residue - (taps - 1) * stride;
    for (int64_t i = start; i < result_size;) {
      const int64_t left = (result_size - i + stride - 1) / stride;
      const int64_t source = (i + pad) / stride - (taps - 1);
      i += stride *
           add_positions(parts, {i, stride, source, 1, 0, taps, first_tap, stride}, left, size);
    }
  }
  return parts;
}

}  // namespace quantrain::kernels
