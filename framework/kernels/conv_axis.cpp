#include "framework/kernels/conv_axis.hpp"

#include <algorithm>

namespace quantrain::kernels {
namespace {

/// Position i of the result, whose taps would see the elements of a source from `origin` on, and
/// those of the `left` positions from it on that see all of theirs too; how many these are.
int64_t add_positions(std::vector<AxisPart>& parts,
                      int64_t i,
                      int64_t result_step,
                      int64_t left,
                      int64_t origin,
                      int64_t source_step,
                      int64_t source_size,
                      int64_t phase_taps,
                      int64_t phase_begin) {
  const int64_t first = std::clamp<int64_t>(-origin, 0, phase_taps);
  const int64_t end = std::clamp(source_size - origin, first, phase_taps);
  const int64_t behind = source_size - origin - phase_taps;
  const int64_t count = origin >= 0 && behind >= 0 ? std::min(left, behind / source_step + 1) : 1;
  if (!parts.empty()) {
    AxisPart& last = parts.back();
    if (i == last.result + last.count * last.result_step && first == last.first_tap &&
        end - first == last.taps && phase_begin == last.phase_begin) {
      last.count += count;
      return count;
    }
  }
  parts.push_back({i,
                   result_step,
                   end > first ? origin + first : 0,
                   source_step,
                   count,
                   end - first,
                   first,
                   phase_taps,
                   phase_begin});
  return count;
}

}  // namespace

std::vector<AxisPart> forward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(2 * kernel));
  for (int64_t i = 0; i < result_size;) {
    i += add_positions(parts, i, 1, result_size - i, i * stride - pad, stride, size, kernel, 0);
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
    parts.push_back({first, 1, first * stride - pad + t, stride, end - first, 1, t, kernel, 0});
  }
  return parts;
}

PhaseTap backward_tap(int64_t t, int64_t kernel, int64_t stride) {
  const int64_t residue = t % stride;
  const auto taps = [&](int64_t r) { return r < kernel ? (kernel - r + stride - 1) / stride : 0; };
  int64_t begin = 0;
  for (int64_t r = 0; r < residue; ++r) begin += taps(r);
  return {taps(residue) - 1 - t / stride, taps(residue), begin};
}

std::vector<AxisPart> backward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(2 * kernel));
  for (int64_t start = 0; start < std::min(stride, result_size); ++start) {
    const int64_t residue = (start + pad) % stride;
    PhaseTap phase{};
    if (residue < kernel) phase = backward_tap(residue, kernel, stride);
    for (int64_t i = start; i < result_size;) {
      const int64_t left = (result_size - i + stride - 1) / stride;
      const int64_t origin = (i + pad) / stride - (phase.phase_taps - 1);
      i += stride *
           add_positions(
               parts, i, stride, left, origin, 1, size, phase.phase_taps, phase.phase_begin);
    }
  }
  return parts;
}

}  // namespace quantrain::kernels
