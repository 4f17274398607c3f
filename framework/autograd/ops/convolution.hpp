#pragma once

#include <string_view>

#include "framework/autograd/ops/pool2d.hpp"

// What conv1d and conv2d share.
namespace quantrain {

/// What x and weight are, in messages: "[N, H, W, C]" and "[O, KH, KW, C / groups]".
struct ConvolutionAxes {
  int rank;
  std::string_view x;
  std::string_view weight;
};
/// Throws: ShapeError naming the operation unless x and weight have these axes, the weight has
/// elements, and groups divide both channels.
void check_channels(std::string_view type,
                    const ConvolutionAxes& axes,
                    const Shape& x,
                    const Shape& weight,
                    int64_t groups);

/// y, the sum of each window's products for each output, and its node.
/// Throws: ShapeError naming the operation unless bias is undefined or [O]; QuantError if an integer
/// sum or bias could overflow.
Tensor convolve(const WindowOperation& operation,
                const kernels::Conv2dShape& shape,
                const Shape& y,
                const Tensor& x,
                const Tensor& weight,
                const Tensor& bias);

}  // namespace quantrain
