#pragma once

#include <cstdint>
#include <vector>

namespace quantrain::kernels {

/// Positions along one axis of the result of a convolution whose windows see the same taps of the
/// kernel, those inside the image: `count` positions from `result` on, `result_step` apart; the
/// first of their `taps` taps sees the elements from `source` on, `source_step` apart, and the
/// others those behind it.
struct AxisPart {
  int64_t result, result_step;
  int64_t source, source_step;
  int64_t count;
  int64_t taps, first_tap;
  /// Taps that positions of this residue could see, where they begin among all.
  int64_t phase_taps, phase_begin;
};

/// Result i sees taps t < kernel at i * stride - pad + t.
std::vector<AxisPart> forward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// The same pairs of results and taps, but a part for the taps that are seen by the same results.
std::vector<AxisPart> forward_taps(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// The gradient by data: position i of the image was seen by tap t of window (i + pad - t) / stride
/// where that has no remainder, so a residue of i + pad has taps of its own. They come in the order
/// of the windows, that is from the last to the first: see backward_tap.
std::vector<AxisPart> backward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// Where tap t comes in that order, and among how many of the same residue.
struct PhaseTap {
  int64_t index, phase_taps, phase_begin;
};
PhaseTap backward_tap(int64_t t, int64_t kernel, int64_t stride);

}  // namespace quantrain::kernels
