#pragma once

#include <string_view>

#include "quant/methods/method.hpp"

namespace quantrain::quant {

/// Bias correction: quantized weights and inputs move the mean of a layer's outputs; this is taken
/// back from the bias, or from the bias of the batch norm that is folded into the layer, channel by
/// channel. Goes from layer to layer in the order in which they run, so each layer sees the inputs
/// that the corrected layers before it compute. The last of several methods: it corrects what they
/// left.
/// Rows: root mean square, over the channels, of mean(y_q) - mean(y).
/// Source: Nagel et al. 2019, section 4.2.
struct BiasCorrection {
  static constexpr std::string_view kName = "bias_correction";
  enum class From {
    kData,  ///< mean(y_q) - mean(y) from the run's data; y of the float network before any method
    /// sum of (w_q - w) E[x], the effect of the weights alone. E[x] follows from the batch norm
    /// that makes the input, whose channels are taken as normal with mean beta and deviation
    /// |gamma|, and from its activation. Layers with another input are skipped.
    kBatchNorms,
  };
  From from = From::kData;

  void apply(MethodRun& run) const;
};

/// E[clip(x, low, high)] for a normal x.
/// high may be infinite, and low -infinity.
/// Source: Nagel et al. 2019, the appendix on the clipped normal distribution.
double clipped_normal_mean(double mean, double deviation, double low, double high);

}  // namespace quantrain::quant
