#pragma once

#include "framework/core/window.hpp"
#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y[n, i, j, o] = bias[o] + sum over kh, kw, c of weight[o, kh, kw, c] * x[n, i * stride +
/// kh * dilation - padding, ..., c], with zeros around the image. In several groups, output channel
/// o sees the channels of group o / (O / groups) alone; groups = in_channels is a depthwise
/// convolution.
/// Shapes: x [N, H, W, C], weight [O, KH, KW, C / groups], bias [O]  ->  y [N, OH, OW, O],
///         OH = (H + 2 * padding - (KH - 1) * dilation - 1) / stride + 1.
/// Parameters: "weight" and "bias", from init::layer_default.
class Conv2d : public Module {
 public:
  /// Sizes in elements, {h, w} or one number for both.
  struct Options {
    Size2d kernel = 3;
    Size2d stride = 1;
    Size2d padding = 0;  ///< zeros on each of two opposite sides
    int64_t groups = 1;
    bool bias = true;
    Size2d dilation = 1;  ///< from one tap of the kernel to the next
  };

  /// Throws: ShapeError if a size is not positive, the padding negative, or groups do not divide
  /// both channels.
  Conv2d(int64_t in_channels, int64_t out_channels)
      : Conv2d(in_channels, out_channels, Options{}) {}
  Conv2d(int64_t in_channels,
         int64_t out_channels,
         Options options,
         Generator& generator = default_generator());
  /// Computes with tensors that exist, such as another layer's weight() and bias(): a network that
  /// would run one layer twice runs two that share their parameters. Of the options, kernel and
  /// bias are the tensors' own.
  /// Throws: ShapeError as above, or unless weight is [O, KH, KW, C] and bias [O] or undefined.
  Conv2d(Tensor weight, Tensor bias, Options options);

  std::string_view type() const override { return "Conv2d"; }
  bool has_weight_slot() const override { return true; }
  const Tensor& weight() const& { return weight_; }
  Tensor weight() const&& { return weight_; }
  /// Undefined without bias.
  const Tensor& bias() const& { return bias_; }
  Tensor bias() const&& { return bias_; }
  const Options& options() const& { return options_; }
  Options options() const&& { return options_; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, in_channels], or smaller than the kernel.
  Tensor forward(const Tensor& x) override;

 private:
  Options options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace quantrain
