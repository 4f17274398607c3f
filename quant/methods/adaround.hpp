#pragma once

#include <cstdint>
#include <string_view>

#include "quant/methods/method.hpp"

namespace quantrain::quant {

/// AdaRound: decides for each weight whether its code is rounded down or up, so that the layer's
/// outputs, after its activation, come closest to those of the float network. Each layer gets the
/// inputs that the quantized layers before it compute. With W the weight (batch norm folded), s its
/// scale, x the inputs, f the activation, for each layer:
///   minimize over V:  ||f(W x) - f(W_soft x_q)||_F^2 + regularization * sum(1 - |2 h(V) - 1|^beta)
///   W_soft = s * clip(floor(W / s) + h(V), qmin, qmax),   h(V): rectified_sigmoid()
/// by Adam. V starts where h is the part of W / s that rounding cuts off; beta falls from
/// `first_beta` to `last_beta` after a warm-up without the regularizer. At the end h >= 1/2 rounds
/// up. If the outputs are not closer than with rounding to nearest, the layer keeps that.
/// The weights become code * s, and s is given to the slot, so that they round to these codes. s is
/// the scale that the network has: with 3 bits and fewer, WeightRanges{} first gives a better one.
/// Rows: root mean square of f(W x) - f(W_q x_q) over the run's data.
/// Memory: the inputs and outputs of one layer for all samples, as floats.
/// Throws: DataError naming an option that is out of range.
/// Source: Nagel et al. 2020, equations 21 to 25.
struct AdaRound {
  static constexpr std::string_view kName = "adaround";
  int64_t iterations = 1000;  ///< steps for each layer
  int64_t batch = 32;         ///< samples of a step, drawn at random
  float learning_rate = 1e-2f;
  float regularization = 1e-2f;
  float warm_up = 0.2f;  ///< share of the iterations
  float first_beta = 20.0f;
  float last_beta = 2.0f;
  uint64_t seed = 0;

  void apply(MethodRun& run) const;
};

}  // namespace quantrain::quant
