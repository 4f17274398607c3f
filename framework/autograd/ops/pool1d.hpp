#pragma once

#include <string_view>

#include "framework/autograd/ops/pool2d.hpp"

// Shared by max_pool1d and avg_pool1d, and in part by conv1d.
namespace quantrain {

struct Pool1dOptions {
  int64_t kernel = 0;
  int64_t stride = 0;              ///< 0: same as kernel
  int64_t padding = 0;             ///< less than kernel, so that every window overlaps the signal
  bool ceil_mode = false;          ///< the last window may reach beyond the padding: pool_end()
  bool count_include_pad = false;  ///< a mean divides by the padding's elements, too
};

/// The checked extents of windows over x [N, L, C], as images of one row. Windows may reach over
/// `end` more elements at the end. The function leaves o (the output channels) and groups at 1; its
/// caller sets both.
/// Throws: ShapeError naming the operation.
kernels::Conv2dShape signal_shape(std::string_view operation,
                                  const Shape& x,
                                  const Window1d& window,
                                  int64_t end = 0);
/// The same extents with rows and columns exchanged: images of one column.
kernels::Conv2dShape exchanged(kernels::Conv2dShape shape);

/// The window of the options, checked.   Throws: ShapeError naming `where`.
Window1d pool1d_window(std::string_view where, const Pool1dOptions& options);

/// The checked extents of a pooling of x [N, L, C] into y [N, OL, C], as images of one row; o and
/// groups are C.   Throws: ShapeError naming the operation.
kernels::Conv2dShape pool1d_shape(std::string_view operation,
                                  const Shape& x,
                                  const Pool1dOptions& options);

/// Kernel, stride and padding along the row, and `end` if it is not 0.
Attributes pool1d_attributes(const kernels::Conv2dShape& shape);

/// The options of a pooling over whole signals.
/// Throws: ShapeError naming the operation unless x is [N, L, C] with L at least 1.
Pool1dOptions global_pool1d(std::string_view operation, const Shape& x);

}  // namespace quantrain
