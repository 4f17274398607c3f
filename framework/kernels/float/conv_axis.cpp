#include "framework/kernels/float/conv_axis.hpp"

#include <algorithm>
#include <numeric>

namespace quantrain::kernels {
namespace {

/// Adds position part.result to `parts`, with only those of its taps that lie inside the source.
/// Its first tap reads element part.source, which may lie outside. If all its taps lie inside, also
/// adds the positions after it, as long as all their taps lie inside. Adds at most `left` positions
/// in total. Returns the number of added positions.
int64_t add_positions(std::vector<AxisPart>& parts,
                      AxisPart part,
                      int64_t left,
                      int64_t source_size) {
  int64_t first = 0;
  int64_t end = part.taps;
  const int64_t behind = source_size - part.source - (part.taps - 1) * part.tap_source - 1;
  if (part.source >= 0 && behind >= 0) {
    part.count = std::min(left, behind / part.source_step + 1);
  } else {
    // The number of taps that lie less than `distance` elements after the first tap.
    const auto before = [&](int64_t distance) {
      return (distance + part.tap_source - 1) / part.tap_source;
    };
    first = std::clamp<int64_t>(before(-part.source), 0, part.taps);
    end = std::clamp(before(source_size - part.source), first, part.taps);
    part.count = 1;
  }
  part.source = end > first ? part.source + first * part.tap_source : 0;
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

std::vector<AxisPart> forward_axis(const ConvAxis& axis) {
  const auto [size, results, kernel, stride, pad, dilation] = axis;
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(2 * kernel));
  for (int64_t i = 0; i < results;) {
    const AxisPart part{i, 1, i * stride - pad, stride, 0, kernel, 0, 1, dilation};
    i += add_positions(parts, part, results - i, size);
  }
  return parts;
}

std::vector<AxisPart> forward_taps(const ConvAxis& axis) {
  const auto [size, results, kernel, stride, pad, dilation] = axis;
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(kernel));
  for (int64_t t = 0; t < kernel; ++t) {
    // Tap t of result i lies inside the image if before <= i * stride < size + before.
    const int64_t before = pad - t * dilation;
    const auto positions = [&, stride = stride, results = results](int64_t end) {
      return std::clamp<int64_t>((end + stride - 1) / stride, 0, results);
    };
    const int64_t first = positions(std::max<int64_t>(before, 0));
    const int64_t end = positions(std::max<int64_t>(size + before, 0));
    if (first >= end) continue;
    if (!parts.empty()) {
      AxisPart& last = parts.back();
      if (last.result == first && last.count == end - first && t == last.first_tap + last.taps) {
        ++last.taps;
        continue;
      }
    }
    parts.push_back({first, 1, first * stride - before, stride, end - first, 1, t, 1, dilation});
  }
  return parts;
}

std::vector<AxisPart> backward_axis(const ConvAxis& axis) {
  const auto [size, results, kernel, stride, pad, dilation] = axis;
  // The taps of result i depend on its residue, (i + pad) % stride. Neighbouring taps of a result
  // lie tap_step apart in the kernel. The elements that they read lie tap_source apart.
  const int64_t divisor = std::gcd(stride, dilation);
  const int64_t tap_step = stride / divisor;
  const int64_t tap_source = dilation / divisor;
  std::vector<AxisPart> parts;
  parts.reserve(static_cast<size_t>(2 * kernel));
  for (int64_t start = 0; start < std::min(stride, size); ++start) {
    const int64_t residue = (start + pad) % stride;
    const int64_t most = std::min(kernel, tap_step);
    int64_t least = 0;
    while (least < most && least * dilation % stride != residue) ++least;
    const int64_t taps = least < most ? (kernel - least + tap_step - 1) / tap_step : 0;
    const int64_t last = least + (taps - 1) * tap_step;
    for (int64_t i = start; i < size;) {
      const int64_t left = (size - i + stride - 1) / stride;
      const int64_t source = taps > 0 ? (i + pad - last * dilation) / stride : 0;
      const AxisPart part{i, stride, source, 1, 0, taps, kernel - 1 - last, tap_step, tap_source};
      i += stride * add_positions(parts, part, left, results);
    }
  }
  return parts;
}

}  // namespace quantrain::kernels
