#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/conv_shape.hpp"

namespace quantrain::kernels {

/// One axis of a convolution: `size` elements of the image, `results` positions of the window.
struct ConvAxis {
  int64_t size, results, kernel, stride, pad, dilation;
};

inline ConvAxis vertical(const Conv2dShape& s) {
  return {s.h, s.oh(), s.kh, s.stride_h, s.pad_h, s.dilation_h};
}
inline ConvAxis horizontal(const Conv2dShape& s) {
  return {s.w, s.ow(), s.kw, s.stride_w, s.pad_w, s.dilation_w};
}

/// A group of positions along one axis of a convolution's result. All their windows cover the same
/// taps. There are `count` positions, `result_step` apart, and the first is `result`. Their windows
/// cover `taps` taps of the kernel, `tap_step` apart, and the first is `first_tap`. At the first
/// position, the first of these taps reads the element `source`. The next position reads
/// `source_step` elements further on. The next tap reads `tap_source` elements further on.
struct AxisPart {
  int64_t result, result_step;
  int64_t source, source_step;
  int64_t count;
  int64_t taps, first_tap, tap_step, tap_source;
};

/// Groups the results whose windows have the same taps inside the image. Tap t of result i reads
/// element i * stride - pad + t * dilation.
std::vector<AxisPart> forward_axis(const ConvAxis& axis);

/// The same pairs of results and taps, grouped by taps instead. Neighbouring taps that lie inside
/// the image for the same results form a part, together with all of these results.
std::vector<AxisPart> forward_taps(const ConvAxis& axis);

/// The axis of the data gradient. Its results are positions i of the image, and its source elements
/// are windows: tap t of window (i + pad - t * dilation) / stride reads position i if the division
/// leaves no remainder. So each residue of i + pad modulo stride has its own taps. The
/// returned parts number the taps backwards, so that their windows ascend: the kernel's last tap is
/// number 0.
std::vector<AxisPart> backward_axis(const ConvAxis& axis);

}  // namespace quantrain::kernels
