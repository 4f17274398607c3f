#pragma once

#include "framework/autograd/tensor.hpp"
#include "framework/core/window.hpp"
#include "framework/kernels/conv_shape.hpp"

namespace quantrain {

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;   ///< zeros on both sides of each axis
  int64_t groups = 1;   ///< output channel o reads the input channels of group o / (O / groups)
  Size2d dilation = 1;  ///< elements from one tap of the kernel to the next
};

/// Cross-correlation: y[n, i, j, o] = bias[o] + sum over u, v, c of
/// weight[o, u, v, c] * x[n, i * stride.h + u * dilation.h - padding.h,
///                           j * stride.w + v * dilation.w - padding.w, g + c],
/// where g is the first channel of o's group.
/// Shapes: x [N, H, W, C], weight [O, KH, KW, C / groups], bias [O] or undefined  ->
/// y [N, OH, OW, O], OH = (H + 2 padding.h - (KH - 1) dilation.h - 1) / stride.h + 1, OW likewise.
/// If x holds activation codes and weight holds symmetric weight codes, the integers are
/// multiplied: y holds exact ProductAccumulators, which include the quantized bias.
/// docs/quantization.md (6), (7)
/// Gradient: each operand gets the gradient of the formula; codes count as the real values they
/// represent.
/// Throws: ShapeError if the shapes do not fit, an option is out of range, OH or OW is below 1, or
/// groups does not divide C and O; QuantError if an integer sum or bias could overflow.
/// Source: ONNX Conv, channels last.
Tensor conv2d(const Tensor& x,
              const Tensor& weight,
              const Tensor& bias = Tensor(),
              const Conv2dOptions& options = {});

/// The checked extents of a convolution. Throws: ShapeError like conv2d().
kernels::Conv2dShape conv2d_shape(const Shape& x,
                                  const Shape& weight,
                                  const Conv2dOptions& options);

}  // namespace quantrain
