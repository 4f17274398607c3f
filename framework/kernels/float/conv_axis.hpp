#pragma once

#include <cstdint>
#include <vector>

namespace quantrain::kernels {

/// Positions along one axis of a convolution's result whose windows cover the same taps: `count`
/// positions from `result` on, `result_step` apart. The taps are `taps` of the kernel's, from
/// `first_tap` on, `tap_step` apart. The first tap reads the elements from `source` on,
/// `source_step` apart; each further tap reads one element further.
struct AxisPart {
  int64_t result, result_step;
  int64_t source, source_step;
  int64_t count;
  int64_t taps, first_tap, tap_step;
};

/// Result i sees taps t < kernel at i * stride - pad + t.
std::vector<AxisPart> forward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// The same pairs of results and taps, grouped by taps: a part holds taps that the same results
/// see.
std::vector<AxisPart> forward_taps(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

/// The gradient by data: tap t of window (i + pad - t) / stride saw position i of the image, if the
/// division leaves no remainder. So each residue of i + pad has its own taps. They come in the
/// order of the windows, from the last tap of the kernel to its first.
std::vector<AxisPart> backward_axis(
    int64_t size, int64_t result_size, int64_t kernel, int64_t stride, int64_t pad);

}  // namespace quantrain::kernels
