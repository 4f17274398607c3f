#pragma once

#include "quant/prepare/methods/learned_range.hpp"

namespace quantrain::quant {

/// LSQ+: scale s and offset beta are learned. beta is the real value of code 0, so the zero point
/// is clamp(half_even(-beta / s), qmin, qmax): real 0 keeps its exact code.   docs/quantization.md
/// (29)
/// Gradient: of s, half_even(x / s) - x / s inside, qmin below, qmax above; of beta, 0 inside, else
/// 1. Both are multiplied as in (4).
/// Domain: s as in (4); beta from -s qmax to -s qmin, so that the range holds 0. If s or beta is
/// not finite, the scale is not, which the next pass reports.
/// Source: Bhalgat et al. 2020, LSQ+, equations (5) to (8); the factor of beta is that of s.
class LsqPlus : public LearnedRange {
 public:
  /// A symmetric scheme and codes of 1 bit have no zero point to learn.
  std::string fault(const QType& type, QScheme scheme) const override;
  std::vector<const char*> names() const override { return {"scale", "offset"}; }
  Values values_of(const ScaleZero& params, const QType& type) const override;
  ScaleZero params_of(const Values& values, int32_t zero_point, const QType& type) const override;
  Values projected(const Values& values, const QType& type) const override;
  LearnedSlope slope(size_t i, const ScaleZero& params, const QType& type) const override;
  int32_t unit(size_t i, const ScaleZero& params, const QType& type) const override;
};

}  // namespace quantrain::quant
