#pragma once

#include <cstdint>

namespace quantrain::kernels {

/// a / b, for divisors that are mostly 1: strides, groups, blocks of an image. A small layer would
/// otherwise spend a noticeable part of its time on divisions.
inline int64_t divide(int64_t a, int64_t b) { return b == 1 ? a : a / b; }

/// A two-dimensional convolution of x [N, H, W, C] with weights [O, KH, KW, C / groups] to
/// y [N, OH, OW, O], or a pooling of x to y. Output channel o belongs to group o / (O / groups).
/// The padding at the top and left is pad_h and pad_w. At the bottom and right it is larger by
/// end_h and end_w, which may be negative; padding is never negative. A tap is one of the KH x KW
/// positions of the kernel. Neighbouring taps are `dilation` elements apart. Pooling has
/// dilation 1.
struct Conv2dShape {
  int64_t n = 1, h = 1, w = 1, c = 1;
  int64_t o = 1, kh = 1, kw = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  int64_t groups = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t end_h = 0, end_w = 0;

  /// Rows and columns that a window spans, from its first tap to its last.
  int64_t window_h() const { return (kh - 1) * dilation_h + 1; }
  int64_t window_w() const { return (kw - 1) * dilation_w + 1; }
  /// Rows and columns of the padded image.
  int64_t padded_h() const { return h + 2 * pad_h + end_h; }
  int64_t padded_w() const { return w + 2 * pad_w + end_w; }
  int64_t oh() const { return divide(padded_h() - window_h(), stride_h) + 1; }
  int64_t ow() const { return divide(padded_w() - window_w(), stride_w) + 1; }
  int64_t group_c() const { return divide(c, groups); }
  int64_t group_o() const { return divide(o, groups); }
  /// Number of terms of the sum for one output element.
  int64_t reduction() const { return kh * kw * group_c(); }
  int64_t x_elements() const { return n * h * w * c; }
  int64_t y_elements() const { return n * oh() * ow() * o; }
  int64_t weight_elements() const { return o * reduction(); }

  friend bool operator==(const Conv2dShape&, const Conv2dShape&) = default;
};

/// Whether weights of both shapes lie in memory alike and belong to the same groups.
inline bool same_weights(const Conv2dShape& a, const Conv2dShape& b) {
  return a.c == b.c && a.o == b.o && a.kh == b.kh && a.kw == b.kw && a.groups == b.groups;
}
/// Whether there are several groups, each with one input and one output channel.
inline bool is_depthwise(const Conv2dShape& s) {
  return s.groups > 1 && s.group_c() == 1 && s.group_o() == 1;
}

}  // namespace quantrain::kernels
