#pragma once

#include "layers/convolution.hpp"
#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y[n, i, o] = bias[o] + sum over t, c of weight[o, t, c] * x[n, i * stride + t * dilation -
/// padding, c], with zeros around the signal. With several groups, output channel o uses only the
/// input channels of its group, floor(o / (O / groups)). groups = in_channels gives a depthwise
/// convolution.
/// Shapes: x [N, L, C], weight [O, K, C / groups], bias [O]  ->  y [N, OL, O],
///         OL = (L + 2 * padding - (K - 1) * dilation - 1) / stride + 1.
/// Parameters: "weight" and "bias", from init::layer_default.
class Conv1d : public Module {
 public:
  /// Sizes in elements.
  struct Options {
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t padding = 0;  ///< zeros at each end
    int64_t groups = 1;
    bool bias = true;
    int64_t dilation = 1;  ///< distance between neighbouring taps of the kernel
  };

  /// Throws: ShapeError if a size is not positive, the padding is negative, or groups does not
  /// divide both channel counts.
  Conv1d(int64_t in_channels, int64_t out_channels)
      : Conv1d(in_channels, out_channels, Options{}) {}
  Conv1d(int64_t in_channels,
         int64_t out_channels,
         Options options,
         Generator& generator = default_generator());
  /// Uses existing tensors, such as another layer's weight() and bias(). If a network uses the
  /// same parameters twice in a pass, make two layers that share them, because quantization refuses
  /// a layer that runs twice.
  /// options.kernel and options.bias are ignored, because the tensors determine both.
  /// Throws: ShapeError as above, or if weight is not [O, K, C / groups], or if bias is defined and
  /// not [O].
  Conv1d(Tensor weight, Tensor bias, Options options);

  static constexpr std::string_view kType = "Conv1d";
  using Members = ConvolutionMembers<Options>;
  static Conv1d from(const Members& m) { return {m.weight, m.bias, m.options}; }
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
  /// Throws: ShapeError if x is not [N, L, in_channels], or if the padded x is smaller than the
  /// dilated kernel.
  Tensor forward(const Tensor& x) override;

 private:
  Options options_;
  Tensor weight_;
  Tensor bias_;
};

}  // namespace quantrain
