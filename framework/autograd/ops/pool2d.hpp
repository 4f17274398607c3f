#pragma once

#include <string_view>

#include "framework/autograd/node.hpp"
#include "framework/core/window.hpp"
#include "framework/kernels/conv_shape.hpp"

// What pools share, those of one axis too, and conv2d in part.
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

/// What an operation of windows is called, and what its node records of them.
struct WindowOperation {
  std::string_view type;   ///< of the node: "max_pool2d"
  std::string_view layer;  ///< that runs it: "MaxPool2d"
  Attributes (*attributes)(const kernels::Conv2dShape& shape);
};

/// Kernel, stride and padding of both axes.
Attributes pool2d_attributes(const kernels::Conv2dShape& shape);

/// y, the largest element of each window of this shape, and its node.   max_pool2d.cpp
/// Throws: ShapeError if a window of more than 65,536 elements is to have a gradient.
Tensor max_pool(const WindowOperation& operation,
                const kernels::Conv2dShape& shape,
                const Shape& y,
                const Tensor& x);
/// y, the mean of each window's elements inside, and its node.   avg_pool2d.cpp
/// Throws: QuantError if a sum of codes could leave 32 bits.
Tensor avg_pool(const WindowOperation& operation,
                const kernels::Conv2dShape& shape,
                const Shape& y,
                const Tensor& x);

}  // namespace quantrain
