#pragma once

#include <string>
#include <string_view>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// Ternary weights (TWN): codes -1, 0 and 1, with a scale for each output.
///   t[o, i] = a[o] * sign(w[o, i]) if |w[o, i]| > d[o], else 0
///   d[o] = threshold * mean of |w[o]|,   a[o] = mean of |w[o, i]| over the weights that are kept
/// Both means are computed in double, from left to right. d is not rounded, a is rounded to float32
/// once. If no weight is kept, t is 0. If a row has a NaN or an infinity, so has t.
/// docs/quantization.md (28)
/// Shapes: w [O, ...]  ->  t like w.
/// Gradient: passes straight through to all weights.
/// Source: Li et al. 2016, Ternary Weight Networks, equations (4) to (6), for each output.
struct Ternary {
  static constexpr std::string_view kKind = "ternary";

  float threshold = 0.7f;  ///< at least 0, less than 1

  /// Why the threshold is out of range, or the weights do not have narrow codes of 2 bits and a
  /// scale for each output; empty if all is well.
  std::string fault(const QType& type, bool per_channel) const;
  Tensor operator()(const Tensor& w, bool per_channel) const;

  static void describe(auto& options, auto& fields) { fields("threshold", options.threshold); }
  friend bool operator==(const Ternary&, const Ternary&) = default;
};

}  // namespace quantrain::quant
