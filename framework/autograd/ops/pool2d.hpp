#pragma once

#include <string_view>

#include "framework/autograd/node.hpp"
#include "framework/core/window.hpp"
#include "framework/kernels/conv_shape.hpp"

// Shared by all pooling operations, including those on signals, and in part by conv1d and conv2d.
namespace quantrain {

struct Pool2dOptions {
  Size2d kernel;
  Size2d stride = 0;               ///< 0: same as kernel
  Size2d padding = 0;              ///< below kernel, so that every window overlaps the image
  bool ceil_mode = false;          ///< the last windows may reach beyond the padding: pool_end()
  bool count_include_pad = false;  ///< a mean divides by the padding's elements, too
};

/// Elements beyond the padding that the last window along an axis reaches over if the number n of
/// windows is rounded up:
///     n = ceil((extent + 2 padding - kernel) / stride) + 1
///     pool_end = max(0, (n - 1) stride + kernel - extent - 2 padding)
/// If the last window would start in the padding at the end, n is one less, so each window has an
/// element of the input.
/// Source: PyTorch's MaxPool2d and AvgPool2d with ceil_mode=True.
int64_t pool_end(int64_t extent, int64_t kernel, int64_t stride, int64_t padding);

/// The checked extents of windows over x [N, H, W, C], which may reach over `end` more elements at
/// the bottom and right. The function leaves o (the output channels) and groups at 1; its caller
/// sets both.
/// Throws: ShapeError naming the operation.
kernels::Conv2dShape image_shape(std::string_view operation,
                                 const Shape& x,
                                 const Window2d& window,
                                 Size2d end = 0);

/// The window of the options, checked.   Throws: ShapeError naming `where`.
Window2d pool2d_window(std::string_view where, const Pool2dOptions& options);

/// The checked extents of a pooling of x [N, H, W, C] into y [N, OH, OW, C]; o and groups are C.
/// Throws: ShapeError naming the operation.
kernels::Conv2dShape pool2d_shape(std::string_view operation,
                                  const Shape& x,
                                  const Pool2dOptions& options);

/// Names and attributes of an operation on windows.
struct WindowOperation {
  std::string_view type;   ///< the node's type: "max_pool2d"
  std::string_view layer;  ///< the layer for the operation: "MaxPool2d"
  Attributes (*attributes)(const kernels::Conv2dShape& shape);
};

/// Kernel, stride and padding of both axes, and `end` if it is not 0.
Attributes pool2d_attributes(const kernels::Conv2dShape& shape);

/// Computes and records y, the largest element of each window.   max_pool2d.cpp
/// Throws: ShapeError if a window of more than 65,536 elements needs a gradient.
Tensor max_pool(const WindowOperation& operation,
                const kernels::Conv2dShape& shape,
                const Shape& y,
                const Tensor& x);
/// Computes and records y, the mean of each window's elements inside the image, or with
/// count_include_pad inside the padded image.   avg_pool2d.cpp
/// Throws: QuantError if x holds codes and their sum could exceed 32 bits.
Tensor avg_pool(const WindowOperation& operation,
                const kernels::Conv2dShape& shape,
                const Shape& y,
                const Tensor& x,
                bool count_include_pad);

/// Throws: ShapeError naming `where` if the flag is set: only a mean counts elements.
void refuse_count_include_pad(std::string_view where, bool count_include_pad);

}  // namespace quantrain
