#pragma once

#include <string_view>

#include "framework/autograd/ops/pool2d.hpp"

// Shared by conv1d and conv2d.
namespace quantrain {

/// Rank and axes of x and weight. Messages print the axes:
/// "[N, H, W, C]", "[O, KH, KW, C / groups]".
struct ConvolutionAxes {
  int rank;
  std::string_view x;
  std::string_view weight;
};
/// Throws: ShapeError naming the operation unless x and weight have this rank, the weight has
/// elements, and the channels of x and weight fit the groups.
void check_channels(std::string_view type,
                    const ConvolutionAxes& axes,
                    const Shape& x,
                    const Shape& weight,
                    int64_t groups);

/// Computes and records y: for each window and output channel, the sum of the products and, if
/// defined, the bias.
/// Throws: ShapeError naming the operation unless bias is undefined or [O]; QuantError if an
/// integer sum or bias could overflow.
Tensor convolve(const WindowOperation& operation,
                const kernels::Conv2dShape& shape,
                const Shape& y,
                const Tensor& x,
                const Tensor& weight,
                const Tensor& bias);

}  // namespace quantrain
