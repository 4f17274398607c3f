#pragma once

#include <cstdint>
#include <vector>

namespace quantrain::kernels {

/// Positions along one axis of the result of a convolution whose windows see the same taps of the
/// kernel, those inside the image: `count` positions from `result` on, `result_step` apart; the
/// first of their `taps` taps sees the elements from `source` on, `source_step` apart, and the
/// others those behind it. Of the kernel's taps they are those from `first_tap` on, `tap_step`
/// apart.
struct AxisPart {
  int64_t result, result_step;
  int64_t source, source_step;
  int64_t count;
  int64_t taps, first_tap, tap_step;
};

/// Result i sees taps t < kernel at i * stride - pad + t.
std::vector<AxisPart> forward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// The same pairs of results and taps, but a part for the taps that are seen by the same results.
std::vector<AxisPart> forward_taps(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// The gradient by data: position i of the image was seen by tap t of window (i + pad - t) / stride
/// where that has no remainder, so a residue of i + pad has taps of its own. They come in the order
/// of the windows, so they are counted from the last tap of the kernel to its first.
std::vector<AxisPart> backward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

}  // namespace quantrain::kernels
