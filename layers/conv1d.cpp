#include "layers/conv1d.hpp"

#include <utility>

#include "framework/autograd/ops/conv1d.hpp"
#include "framework/core/error.hpp"
#include "framework/core/window.hpp"
#include "layers/convolution.hpp"

namespace quantrain {
namespace {

void check_conv1d(int64_t in_channels, int64_t out_channels, const Conv1d::Options& options) {
  const auto& [kernel, stride, padding, groups, bias, dilation] = options;
  check_channel_counts("Conv1d", in_channels, out_channels, groups);
  validate(Window1d{kernel, stride, padding, dilation}, "Conv1d");
}

}  // namespace

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, Options options, Generator& generator)
    : options_(options) {
  check_conv1d(in_channels, out_channels, options);
  weight_ = add_parameter(
      "weight", Tensor::empty({out_channels, options_.kernel, in_channels / options_.groups}));
  if (options_.bias) bias_ = add_parameter("bias", Tensor::empty({out_channels}));
  init::layer_default(weight_, bias_, generator);
}

Conv1d::Conv1d(Tensor weight, Tensor bias, Options options) : options_(options) {
  check_weights("Conv1d", weight, bias, 3, "[O, K, C / groups]", options.groups);
  options_.kernel = weight.dim(1);
  options_.bias = bias.defined();
  check_conv1d(weight.dim(2) * options.groups, weight.dim(0), options_);
  weight_ = add_parameter("weight", std::move(weight));
  if (bias.defined()) bias_ = add_parameter("bias", std::move(bias));
}

Tensor Conv1d::forward(const Tensor& x) {
  if (x.rank() != 3 || x.dim(2) != weight_.dim(2) * options_.groups) {
    throw ShapeError(where(),
                     "takes signals [N, L, ",
                     weight_.dim(2) * options_.groups,
                     "]: x ",
                     x.shape(),
                     ", weight ",
                     weight_.shape());
  }
  Weights w{weight_, bias_};
  if (slots().weight) w = slots().weight->apply(w, x);
  Tensor y = conv1d(x,
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
