#include "framework/autograd/ops/conv2d.hpp"

#include "framework/autograd/ops/convolution.hpp"

namespace quantrain {
namespace {

Attributes image_attributes(const kernels::Conv2dShape& s) {
  return {{"stride", std::vector<int64_t>{s.stride_h, s.stride_w}},
          {"padding", std::vector<int64_t>{s.pad_h, s.pad_w}},
          {"groups", s.groups},
          {"dilation", std::vector<int64_t>{s.dilation_h, s.dilation_w}}};
}

}  // namespace

kernels::Conv2dShape conv2d_shape(const Shape& x,
                                  const Shape& weight,
                                  const Conv2dOptions& options) {
  const ConvolutionAxes axes{4, "[N, H, W, C]", "[O, KH, KW, C / groups]"};
  check_channels("conv2d", axes, x, weight, options.groups);
  kernels::Conv2dShape s = image_shape(
      "conv2d", x, {{weight[1], weight[2]}, options.stride, options.padding, options.dilation});
  s.o = weight[0];
  s.groups = options.groups;
  return s;
}

Tensor conv2d(const Tensor& x,
              const Tensor& weight,
              const Tensor& bias,
              const Conv2dOptions& options) {
  const kernels::Conv2dShape s = conv2d_shape(x.shape(), weight.shape(), options);
  return convolve(
      {"conv2d", "Conv2d", image_attributes}, s, {s.n, s.oh(), s.ow(), s.o}, x, weight, bias);
}

}  // namespace quantrain
