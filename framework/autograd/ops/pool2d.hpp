#pragma once

#include <string_view>

#include "framework/autograd/node.hpp"
#include "framework/core/window.hpp"
#include "framework/kernels/conv_shape.hpp"

// What max_pool2d and avg_pool2d share, and conv2d in part.
namespace quantrain {

struct Pool2dOptions {
  Size2d kernel;
  Size2d stride = 0;   ///< 0: the kernel
  Size2d padding = 0;  ///< below the kernel: every window meets the image
};

/// The extents of windows over x [N, H, W, C], checked; o and groups are left at 1.
/// Throws: ShapeError naming the operation.
kernels::Conv2dShape image_shape(std::string_view operation,
                                 const Shape& x,
                                 const Window2d& window);

/// The options' window, checked.   Throws: ShapeError naming `where`.
Window2d pool2d_window(std::string_view where, const Pool2dOptions& options);

/// The extents of a pooling of x [N, H, W, C] into y [N, OH, OW, C], checked; o and groups are C.
/// Throws: ShapeError naming the operation.
kernels::Conv2dShape pool2d_shape(std::string_view operation,
                                  const Shape& x,
                                  const Pool2dOptions& options);

/// kernel, stride and padding, as recorded.
Attributes pool2d_attributes(const kernels::Conv2dShape& shape);

}  // namespace quantrain
