#include "framework/autograd/ops/pool1d.hpp"

#include <limits>
#include <utility>

#include "framework/core/error.hpp"

namespace quantrain {

kernels::Conv2dShape signal_shape(std::string_view operation,
                                  const Shape& x,
                                  const Window1d& window,
                                  int64_t end) {
  validate(window, operation);
  if (x[1] > std::numeric_limits<int32_t>::max())
    throw ShapeError(operation, "a signal of length 2^31 or more: x ", x);
  if (x[1] < 1) throw ShapeError(operation, "a signal of length 0: x ", x);
  if (!window.fits(x[1] + end))
    throw ShapeError(operation, "the kernel is larger than the padded signal: x ", x, ", ", window);
  return image_shape(operation, {x[0], 1, x[1], x[2]}, window.in_row(), {0, end});
}

kernels::Conv2dShape exchanged(kernels::Conv2dShape s) {
  std::swap(s.h, s.w);
  std::swap(s.kh, s.kw);
  std::swap(s.stride_h, s.stride_w);
  std::swap(s.pad_h, s.pad_w);
  std::swap(s.dilation_h, s.dilation_w);
  std::swap(s.end_h, s.end_w);
  return s;
}

Window1d pool1d_window(std::string_view where, const Pool1dOptions& options) {
  const auto& [kernel, stride, padding, ceil_mode, count_include_pad] = options;
  const Window1d window{
      .kernel = kernel, .stride = stride == 0 ? kernel : stride, .padding = padding};
  validate(window, where);
  if (padding >= kernel) throw ShapeError(where, "the padding is not below the kernel: ", window);
  return window;
}

kernels::Conv2dShape pool1d_shape(std::string_view operation,
                                  const Shape& x,
                                  const Pool1dOptions& options) {
  if (x.rank() != 3) throw ShapeError(operation, "x is not [N, L, C]: x ", x);
  const Window1d window = pool1d_window(operation, options);
  const int64_t end =
      options.ceil_mode ? pool_end(x[1], window.kernel, window.stride, window.padding) : 0;
  kernels::Conv2dShape s = signal_shape(operation, x, window, end);
  s.o = s.groups = s.c;
  if (x.elements() > std::numeric_limits<int32_t>::max())
    throw ShapeError(operation, "x has 2^31 elements or more: x ", x);
  return s;
}

Attributes pool1d_attributes(const kernels::Conv2dShape& s) {
  Attributes result{{"kernel", std::vector<int64_t>{s.kw}},
                    {"stride", std::vector<int64_t>{s.stride_w}},
                    {"padding", std::vector<int64_t>{s.pad_w}}};
  if (s.end_w > 0) result.add("end", std::vector<int64_t>{s.end_w});
  return result;
}

Pool1dOptions global_pool1d(std::string_view operation, const Shape& x) {
  if (x.rank() != 3 || x[1] < 1)
    throw ShapeError(operation, "x is not [N, L, C] with L of at least 1: ", x);
  return {.kernel = x[1]};
}

}  // namespace quantrain
