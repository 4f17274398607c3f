#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "quant/methods/method.hpp"

namespace quantrain::quant {

/// Weight scales of least squared error. By default, a scale is chosen so that the largest weight
/// has the last code. With few bits, it pays to clip the largest weights: of scales from the
/// `least` part of that scale to the whole, in `steps` equal steps, takes the one with the least
/// sum of (w - w_q)^2 over the weights that share it. The scale is then given: it stays if the
/// weights change.
/// Rows: root mean square of w - w_q of a layer.
/// Throws: DataError unless steps is positive and least is in (0, 1]. Layers with learned, given or
/// affine scales are skipped, and so are scales that a large bias determines.
/// docs/quantization.md (5)
struct WeightRanges {
  static constexpr std::string_view kName = "weight_ranges";
  int64_t steps = 70;
  float least = 0.3f;

  void apply(MethodRun& run) const;
};

/// Sum of (w - w_q)^2 with this scale.
double squared_error(std::span<const float> w, float scale, const QType& type);

}  // namespace quantrain::quant
