#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/arithmetic/quantize.hpp"

namespace quantrain {

/// Activation that is fused into an operation: identity, max(x, 0), or min(max(x, 0), 6).
enum class Activation { kNone, kRelu, kRelu6 };

/// "none", "relu", "relu6".
inline constexpr const char* to_string(Activation activation) {
  return activation == Activation::kNone   ? "none"
         : activation == Activation::kRelu ? "relu"
                                           : "relu6";
}

/// Upper bound of ReLU6.   docs/quantization.md (9)
inline constexpr float kRelu6Bound = 6.0f;
/// Largest value after the activation; infinite if it has no upper bound.
inline constexpr float upper_bound(Activation activation) {
  return activation == Activation::kRelu6 ? kRelu6Bound : __builtin_inff();
}

/// Requantization clamps its codes to [lo, hi].
struct CodeClamp {
  int32_t lo = 0;
  int32_t hi = 255;
};

/// Maps a range of values through the activation. NaN stays NaN.
inline Range activated(Range range, Activation activation) {
  if (activation == Activation::kNone) return range;
  const float hi = upper_bound(activation);
  return {std::min(std::max(range.min, 0.0f), hi), std::min(std::max(range.max, 0.0f), hi)};
}

/// ReLU: lo = max(qmin, zero_point); ReLU6: also hi = min(qmax, quantize(6)).
/// docs/quantization.md (9)
inline CodeClamp code_clamp(Activation activation,
                            const QType& type,
                            float scale,
                            int32_t zero_point) {
  CodeClamp clamp{type.qmin(), type.qmax()};
  if (activation != Activation::kNone) clamp.lo = std::max(clamp.lo, zero_point);
  if (activation == Activation::kRelu6) {
    clamp.hi = quantize(kRelu6Bound, scale, zero_point, type.qmin(), type.qmax());
  }
  return clamp;
}

}  // namespace quantrain
