#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

// The parts of AdaRound that compute: a rounding that can be trained, and what makes it decide.
// Source: Nagel et al. 2020, equations 22 to 24; Louizos et al. 2018 for the rectified sigmoid.
namespace quantrain::quant {

/// zeta and gamma: the sigmoid is stretched, so that h reaches 0 and 1.
inline constexpr float kStretchHigh = 1.1f;
inline constexpr float kStretchLow = -0.1f;

/// h(v) = clip(sigmoid(v) * (zeta - gamma) + gamma, 0, 1), for each element.
std::vector<float> rectified_sigmoid(std::span<const float> v);
/// The v whose h(v) is `share`, for each element. Shares are in [0, 1].
std::vector<float> rounding_logits(std::span<const float> share);

/// Weights between two codes.
struct SoftWeights {
  std::vector<float> floor;  ///< of each weight divided by its scale
  QParams params;            ///< symmetric, per tensor or along axis 0
};

/// y = scale * clip(floor + h(v), qmin, qmax).
/// Shapes: v like the weights [O, ...]  ->  y like v.
/// Gradient: scale * h'(v) where floor + h(v) lies within [qmin, qmax] and h is not clipped, else
/// 0; h'(v) = (zeta - gamma) * sigmoid(v) * (1 - sigmoid(v)).
Tensor soft_quantize(const Tensor& v, const std::shared_ptr<const SoftWeights>& weights);

/// y = sum over i of 1 - |2 h(v_i) - 1|^beta: 0 once each h is 0 or 1.
/// Shapes: v [...]  ->  y [].
/// Gradient: -2 beta sign(2 h - 1) |2 h - 1|^(beta - 1) h'(v).
/// beta: rounded to a multiple of 1/16, so that the power needs square roots and products only,
/// which are equal on every machine.
/// Throws: QuantError unless beta is in [1, 64].
Tensor rounding_regularizer(const Tensor& v, float beta);

/// The paper's ||y - target||_F^2: squared errors, summed over the channels (the last axis) and
/// averaged over all others.
/// Shapes: y and target [..., C]  ->  [].   Gradient: 2 (y - target) C / elements.
Tensor reconstruction_loss(const Tensor& y, const Tensor& target);

/// beta of a step: `first` during the warm-up, then it falls linearly to `last`.
/// warm_up: number of steps, at most `steps`.
float annealed_beta(int64_t step, int64_t steps, int64_t warm_up, float first, float last);

}  // namespace quantrain::quant
