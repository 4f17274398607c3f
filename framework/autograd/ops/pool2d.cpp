#include "framework/autograd/ops/pool2d.hpp"

#include <algorithm>
#include <limits>

#include "framework/core/error.hpp"

namespace quantrain {

int64_t pool_end(int64_t extent, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t beyond = extent + 2 * padding - kernel + stride - 1;
  if (beyond < 0) return 0;  // not even one window: the caller reports it
  int64_t last = beyond / stride;
  if (last * stride >= extent + padding) --last;
  return std::max<int64_t>(0, last * stride + kernel - extent - 2 * padding);
}

kernels::Conv2dShape image_shape(std::string_view operation,
                                 const Shape& x,
                                 const Window2d& window,
                                 Size2d end) {
  const auto& [kernel, stride, padding, dilation] = window;
  validate(window, operation);
  if (std::max(x[1], x[2]) > std::numeric_limits<int32_t>::max())
    throw ShapeError(operation, "the image has 2^31 or more rows or columns: x ", x);
  if (x[1] < 1 || x[2] < 1) throw ShapeError(operation, "an image without pixels: x ", x);
  if (!window.fits({x[1] + end.h, x[2] + end.w}))
    throw ShapeError(operation, "the kernel is larger than the padded image: x ", x, ", ", window);
  return {.n = x[0],
          .h = x[1],
          .w = x[2],
          .c = x[3],
          .kh = kernel.h,
          .kw = kernel.w,
          .stride_h = stride.h,
          .stride_w = stride.w,
          .pad_h = padding.h,
          .pad_w = padding.w,
          .dilation_h = dilation.h,
          .dilation_w = dilation.w,
          .end_h = end.h,
          .end_w = end.w};
}

Window2d pool2d_window(std::string_view where, const Pool2dOptions& options) {
  const auto& [kernel, stride, padding, ceil_mode, count_include_pad] = options;
  const Window2d window{
      .kernel = kernel,
      .stride = {stride.h == 0 ? kernel.h : stride.h, stride.w == 0 ? kernel.w : stride.w},
      .padding = padding};
  validate(window, where);
  if (padding.h >= kernel.h || padding.w >= kernel.w)
    throw ShapeError(where, "the padding is not below the kernel: ", window);
  return window;
}

kernels::Conv2dShape pool2d_shape(std::string_view operation,
                                  const Shape& x,
                                  const Pool2dOptions& options) {
  if (x.rank() != 4) throw ShapeError(operation, "x is not [N, H, W, C]: x ", x);
  const Window2d window = pool2d_window(operation, options);
  const auto& [kernel, stride, padding, dilation] = window;
  Size2d end = 0;
  if (options.ceil_mode) {
    end = {pool_end(x[1], kernel.h, stride.h, padding.h),
           pool_end(x[2], kernel.w, stride.w, padding.w)};
  }
  kernels::Conv2dShape s = image_shape(operation, x, window, end);
  s.o = s.groups = s.c;
  if (x.elements() > std::numeric_limits<int32_t>::max())
    throw ShapeError(operation, "x has 2^31 elements or more: x ", x);
  return s;
}

Attributes pool2d_attributes(const kernels::Conv2dShape& s) {
  Attributes result{{"kernel", std::vector<int64_t>{s.kh, s.kw}},
                    {"stride", std::vector<int64_t>{s.stride_h, s.stride_w}},
                    {"padding", std::vector<int64_t>{s.pad_h, s.pad_w}}};
  if (s.end_h > 0 || s.end_w > 0) result.add("end", std::vector<int64_t>{s.end_h, s.end_w});
  return result;
}

void refuse_count_include_pad(std::string_view where, bool count_include_pad) {
  if (count_include_pad)
    throw ShapeError(where, "a maximum counts no elements: count_include_pad is for average pools");
}

}  // namespace quantrain
