#pragma once

#include "framework/core/window.hpp"
#include "layers/convolution.hpp"
#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y[n, i, j, o] = bias[o] + sum over kh, kw, c of weight[o, kh, kw, c] *
/// x[n, i * stride.h + kh * dilation.h - padding.h, j * stride.w + kw * dilation.w - padding.w, c],
/// with zeros around the image. With several groups, output channel o uses only the input channels
/// of its group, floor(o / (O / groups)). groups = in_channels gives a depthwise convolution.
/// Shapes: x [N, H, W, C], weight [O, KH, KW, C / groups], bias [O]  ->  y [N, OH, OW, O],
///         OH = (H + 2 * padding.h - (KH - 1) * dilation.h - 1) / stride.h + 1, OW likewise.
/// Parameters: "weight" and "bias", from init::layer_default.
class Conv2d : public Module {
 public:
  /// Sizes in elements, {h, w} or one number for both.
  struct Options {
    Size2d kernel = 3;
    Size2d stride = 1;
    Size2d padding = 0;  ///< zeros on both sides of each axis
    int64_t groups = 1;
    bool bias = true;
    Size2d dilation = 1;  ///< distance between neighbouring taps of the kernel
  };

  /// Throws: ShapeError if a size is not positive, the padding is negative, or groups does not
  /// divide both channel counts.
  Conv2d(int64_t in_channels, int64_t out_channels)
      : Conv2d(in_channels, out_channels, Options{}) {}
  Conv2d(int64_t in_channels,
         int64_t out_channels,
         Options options,
         Generator& generator = default_generator());
  /// Uses existing tensors, such as another layer's weight() and bias(). If a network uses the
  /// same parameters twice in a pass, make two layers that share them, because quantization refuses
  /// a layer that runs twice.
  /// options.kernel and options.bias are ignored, because the tensors determine both.
  /// Throws: ShapeError as above, or if weight is not [O, KH, KW, C / groups], or if bias is
  /// defined and not [O].
  Conv2d(Tensor weight, Tensor bias, Options options);

  static constexpr std::string_view kType = "Conv2d";
  using Members = ConvolutionMembers<Options>;
  static Conv2d from(const Members& m) { return {m.weight, m.bias, m.options}; }
  Members members() const { return {options_, weight_, bias_}; }
  std::string_view type() const override { return kType; }
  bool has_weight_slot() const override { return true; }
  const Tensor& weight() const& { return weight_; }
  Tensor weight() const&& { return weight_; }
  /// Undefined if the layer has no bias.
  const Tensor& bias() const& { return bias_; }
  Tensor bias() const&& { return bias_; }
  const Options& options() const& { return options_; }
  Options options() const&& { return options_; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, in_channels], or if the padded x is smaller than the
  /// dilated kernel.
  Tensor forward(const Tensor& x) override;

 private:
  Options options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace quantrain
