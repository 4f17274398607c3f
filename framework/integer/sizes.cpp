#include "framework/integer/sizes.hpp"

#include <algorithm>
#include <utility>

#include "framework/core/error.hpp"

namespace quantrain::integer {

void check_size(std::string_view where, std::initializer_list<int64_t> extents) {
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (extent < 1) throw ShapeError(where, "extent ", extent, " is not positive");
    if (extent > kMostElements / elements)
      throw ShapeError(where, "a value has more than ", kMostElements, " elements");
    elements *= extent;
  }
}

void check_window(std::string_view where, const kernels::Conv2dShape& s) {
  for (const int64_t extent : {s.h,
                               s.w,
                               s.c,
                               s.o,
                               s.kh,
                               s.kw,
                               s.stride_h,
                               s.stride_w,
                               s.groups,
                               s.dilation_h,
                               s.dilation_w}) {
    if (extent < 1 || extent > kMostExtent)
      throw ShapeError(where, "extent ", extent, " is not in [1, ", kMostExtent, "]");
  }
  for (const auto& [h, w] : {std::pair{s.pad_h, s.pad_w}, {s.pad_h + s.end_h, s.pad_w + s.end_w}}) {
    if (h < 0 || w < 0 || h > kMostExtent || w > kMostExtent)
      throw ShapeError(where, "padding [", h, ", ", w, "] is not in [0, ", kMostExtent, "]");
  }
  if (s.c % s.groups != 0 || s.o % s.groups != 0) {
    throw ShapeError(
        where, s.groups, " groups do not divide ", s.c, " inputs and ", s.o, " outputs");
  }
  const int64_t padded_h = s.padded_h(), padded_w = s.padded_w();
  if (s.window_h() > padded_h || s.window_w() > padded_w) {
    throw ShapeError(where,
                     is_dilated(s) ? "a dilated kernel of [" : "kernel [",
                     s.window_h(),
                     ", ",
                     s.window_w(),
                     "] exceeds the padded image [",
                     padded_h,
                     ", ",
                     padded_w,
                     "]");
  }
  if (s.n != 1) throw ShapeError(where, "the shape must be of one sample, got ", s.n);
  // Kernels may copy an image with its padding.
  check_size(where, {padded_h, padded_w, s.c});
  check_size(where, {s.oh(), s.ow(), s.o});
}

void check_pool(std::string_view where, const kernels::Conv2dShape& s) {
  check_window(where, s);
  if (s.o != s.c || s.groups != s.c) {
    throw ShapeError(where,
                     "a pool must have as many outputs and groups as channels, got ",
                     s.c,
                     " channels, ",
                     s.o,
                     " outputs and ",
                     s.groups,
                     " groups");
  }
  if (is_dilated(s)) {
    throw ShapeError(where, "a pool has dilation 1, got [", s.dilation_h, ", ", s.dilation_w, "]");
  }
  if (s.pad_h >= s.kh || s.pad_w >= s.kw || (s.oh() - 1) * s.stride_h >= s.h + s.pad_h ||
      (s.ow() - 1) * s.stride_w >= s.w + s.pad_w) {
    throw ShapeError(where,
                     "padding [",
                     s.pad_h,
                     ", ",
                     s.pad_w,
                     "] leaves windows without elements of the image");
  }
  const int64_t window = std::min(s.kh, s.h) * std::min(s.kw, s.w);
  if (s.y_elements() > kMostPoolReads / window) {
    throw ShapeError(where,
                     s.y_elements(),
                     " windows of ",
                     window,
                     " elements are more than ",
                     kMostPoolReads,
                     " reads: take a larger stride or a smaller kernel");
  }
}

}  // namespace quantrain::integer
