#include "framework/autograd/ops/conv1d.hpp"

#include "framework/autograd/ops/convolution.hpp"
#include "framework/autograd/ops/pool1d.hpp"

namespace quantrain {
namespace {

/// For a depthwise convolution, exchanges rows and columns. The function is its own inverse.
kernels::Conv2dShape arranged(const kernels::Conv2dShape& s) {
  return is_depthwise(s) ? exchanged(s) : s;
}

Attributes signal_attributes(const kernels::Conv2dShape& shape) {
  const kernels::Conv2dShape s = arranged(shape);
  return {{"stride", std::vector<int64_t>{s.stride_w}},
          {"padding", std::vector<int64_t>{s.pad_w}},
          {"groups", s.groups},
          {"dilation", std::vector<int64_t>{s.dilation_w}}};
}

}  // namespace

kernels::Conv2dShape conv1d_shape(const Shape& x,
                                  const Shape& weight,
                                  const Conv1dOptions& options) {
  const auto& [stride, padding, groups, dilation] = options;
  check_channels("conv1d", {3, "[N, L, C]", "[O, K, C / groups]"}, x, weight, groups);
  kernels::Conv2dShape s = signal_shape("conv1d", x, {weight[1], stride, padding, dilation});
  s.o = weight[0];
  s.groups = groups;
  return arranged(s);
}

Tensor conv1d(const Tensor& x,
              const Tensor& weight,
              const Tensor& bias,
              const Conv1dOptions& options) {
  const kernels::Conv2dShape s = conv1d_shape(x.shape(), weight.shape(), options);
  return convolve(
      {"conv1d", "Conv1d", signal_attributes}, s, {s.n, s.oh() * s.ow(), s.o}, x, weight, bias);
}

}  // namespace quantrain
