#pragma once

#include "framework/autograd/tensor.hpp"
#include "framework/kernels/conv_shape.hpp"

namespace quantrain {

struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;   ///< zeros at each end
  int64_t groups = 1;    ///< output channel o reads the input channels of group o / (O / groups)
  int64_t dilation = 1;  ///< elements from one tap of the kernel to the next
};

/// Cross-correlation: y[n, i, o] = bias[o] + sum over t, c of
/// weight[o, t, c] * x[n, i * stride + t * dilation - padding, g + c], where g is the first channel
/// of o's group.   docs/quantization.md (22)
/// Shapes: x [N, L, C], weight [O, K, C / groups], bias [O] or undefined  ->  y [N, OL, O],
/// OL = (L + 2 padding - (K - 1) dilation - 1) / stride + 1.
/// Codes: as in conv2d.   docs/quantization.md (6), (7)
/// Gradient: each operand gets the gradient of the formula; codes count as the real values they
/// represent.
/// Throws: ShapeError if the shapes do not fit, an option is out of range, OL is below 1, or groups
/// does not divide C and O; QuantError if an integer sum or bias could overflow.
/// Source: ONNX Conv over one axis, channels last.
Tensor conv1d(const Tensor& x,
              const Tensor& weight,
              const Tensor& bias = Tensor(),
              const Conv1dOptions& options = {});

/// The checked extents of a convolution of signals, expressed as a convolution of images. Each
/// signal becomes an image of one row, so that a window is contiguous. In a depthwise convolution,
/// each signal becomes an image of one column instead, because the integer depthwise kernels
/// combine several rows in a vector.
/// Throws: ShapeError as conv1d.
kernels::Conv2dShape conv1d_shape(const Shape& x,
                                  const Shape& weight,
                                  const Conv1dOptions& options);

}  // namespace quantrain
