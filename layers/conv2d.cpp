#include "layers/conv2d.hpp"

#include <utility>

#include "framework/autograd/ops/conv2d.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

void check(int64_t in_channels, int64_t out_channels, const Conv2d::Options& options) {
  const auto& [kernel, stride, padding, groups, bias, dilation] = options;
  if (in_channels <= 0 || out_channels <= 0) {
    throw ShapeError(
        "Conv2d", "channels must be positive: in ", in_channels, ", out ", out_channels);
  }
  validate(Window2d{kernel, stride, padding, dilation}, "Conv2d");
  if (groups <= 0 || in_channels % groups != 0 || out_channels % groups != 0) {
    throw ShapeError("Conv2d",
                     "groups ",
                     groups,
                     " do not divide the channels: in ",
                     in_channels,
                     ", out ",
                     out_channels);
  }
}

}  // namespace

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Options options, Generator& generator)
    : options_(options) {
  check(in_channels, out_channels, options);
  const Size2d kernel = options_.kernel;
  weight_ = add_parameter(
      "weight", Tensor::empty({out_channels, kernel.h, kernel.w, in_channels / options_.groups}));
  if (options_.bias) bias_ = add_parameter("bias", Tensor::empty({out_channels}));
  init::layer_default(weight_, bias_, generator);
}

Conv2d::Conv2d(Tensor weight, Tensor bias, Options options) : options_(options) {
  if (!weight.defined()) throw ShapeError("Conv2d", "the weight is undefined");
  if (weight.rank() != 4)
    throw ShapeError("Conv2d", "a weight is [O, KH, KW, C], got ", weight.shape());
  if (bias.defined() && !(bias.shape() == Shape{weight.dim(0)})) {
    throw ShapeError("Conv2d", "bias ", bias.shape(), " does not fit weight ", weight.shape());
  }
  options_.kernel = {weight.dim(1), weight.dim(2)};
  options_.bias = bias.defined();
  // Before their product with the channels is taken.
  if (options.groups < 1 || options.groups > weight.dim(0)) {
    throw ShapeError("Conv2d", "groups ", options.groups, " for a weight ", weight.shape());
  }
  check(weight.dim(3) * options.groups, weight.dim(0), options_);
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
  return conv2d(x,
                w.weight,
                w.bias,
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .groups = options_.groups,
                 .dilation = options_.dilation});
}

}  // namespace quantrain
