#include "framework/autograd/ops/pool2d.hpp"

#include <algorithm>
#include <limits>

#include "framework/core/error.hpp"

namespace quantrain {

kernels::Conv2dShape pool2d_shape(std::string_view operation,
                                  const Shape& x,
                                  const Pool2dOptions& options) {
  const Size2d kernel = options.kernel, stride = options.stride, padding = options.padding;
  const auto fail = [&](const char* text) {
    throw ShapeError(operation,
                     text,
                     ": x ",
                     x,
                     ", kernel [",
                     kernel.h,
                     ", ",
                     kernel.w,
                     "], stride [",
                     stride.h,
                     ", ",
                     stride.w,
                     "], padding [",
                     padding.h,
                     ", ",
                     padding.w,
                     "]");
  };
  if (x.rank() != 4) fail("x is not [N, H, W, C]");
  if (kernel.h < 1 || kernel.w < 1) fail("the kernel is below 1");
  if (std::max({kernel.h, kernel.w, stride.h, stride.w}) > std::numeric_limits<int32_t>::max()) {
    fail("kernel or stride is 2^31 or more");  // extents computed from it could overflow
  }
  if (stride.h < 0 || stride.w < 0) fail("the stride is negative");
  if (padding.h < 0 || padding.w < 0) fail("the padding is negative");
  if (padding.h >= kernel.h || padding.w >= kernel.w) fail("the padding is not below the kernel");
  kernels::Conv2dShape s;
  s.n = x[0], s.h = x[1], s.w = x[2], s.c = x[3];
  s.o = s.groups = s.c;
  s.kh = kernel.h, s.kw = kernel.w;
  s.stride_h = stride.h == 0 ? kernel.h : stride.h;
  s.stride_w = stride.w == 0 ? kernel.w : stride.w;
  s.pad_h = padding.h, s.pad_w = padding.w;
  if (s.h + 2 * s.pad_h < s.kh || s.w + 2 * s.pad_w < s.kw || s.h < 1 || s.w < 1) {
    fail("the kernel is larger than the padded image");
  }
  if (x.elements() > std::numeric_limits<int32_t>::max()) fail("x has 2^31 elements or more");
  return s;
}

Attributes pool2d_attributes(const kernels::Conv2dShape& s) {
  return {{"kernel", std::vector<int64_t>{s.kh, s.kw}},
          {"stride", std::vector<int64_t>{s.stride_h, s.stride_w}},
          {"padding", std::vector<int64_t>{s.pad_h, s.pad_w}}};
}

}  // namespace quantrain
