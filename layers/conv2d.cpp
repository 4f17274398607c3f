#include "layers/conv2d.hpp"

#include <utility>

#include "framework/autograd/ops/conv2d.hpp"
#include "framework/core/error.hpp"
#include "layers/convolution.hpp"

namespace quantrain {
namespace {

void check_conv2d(int64_t in_channels, int64_t out_channels, const Conv2d::Options& options) {
  const auto& [kernel, stride, padding, groups, bias, dilation] = options;
  check_channel_counts("Conv2d", in_channels, out_channels, groups);
  validate(Window2d{kernel, stride, padding, dilation}, "Conv2d");
}

}  // namespace

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Options options, Generator& generator)
    : options_(options) {
  check_conv2d(in_channels, out_channels, options);
  const Size2d kernel = options_.kernel;
  weight_ = add_parameter(
      "weight", Tensor::empty({out_channels, kernel.h, kernel.w, in_channels / options_.groups}));
  if (options_.bias) bias_ = add_parameter("bias", Tensor::empty({out_channels}));
  init::layer_default(weight_, bias_, generator);
}

Conv2d::Conv2d(Tensor weight, Tensor bias, Options options) : options_(options) {
  check_weights("Conv2d", weight, bias, 4, "[O, KH, KW, C / groups]", options.groups);
  options_.kernel = {weight.dim(1), weight.dim(2)};
  options_.bias = bias.defined();
  check_conv2d(weight.dim(3) * options.groups, weight.dim(0), options_);
  weight_ = add_parameter("weight", std::move(weight));
  if (bias.defined()) bias_ = add_parameter("bias", std::move(bias));
}

Tensor Conv2d::forward(const Tensor& x) {
  if (x.rank() != 4 || x.dim(3) != weight_.dim(3) * options_.groups) {
    throw ShapeError(where(),
                     "takes images [N, H, W, ",
                     weight_.dim(3) * options_.groups,
                     "]: x ",
                     x.shape(),
                     ", weight ",
                     weight_.shape());
  }
  Weights w{weight_, bias_};
  if (slots().weight) w = slots().weight->apply(w, x);
  Tensor y = conv2d(x,
                    w.weight,
                    w.bias,
                    {.stride = options_.stride,
                     .padding = options_.padding,
                     .groups = options_.groups,
                     .dilation = options_.dilation});
  TensorAccess::set_rescaling(y, std::move(w.rescaling));
  return y;
}

}  // namespace quantrain
