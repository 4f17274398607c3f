#pragma once

#include "quant/prepare/methods/learned_range.hpp"

namespace quantrain::quant {

/// PACT: the end alpha of the range [0, alpha] is learned, and the scale is alpha / qmax. Where the
/// first tensor has negative values, the zero point is that which the observer chooses for it, and
/// alpha is the end that is farther from 0: scale = alpha / n, n = max(qmax - z, z - qmin).
/// docs/quantization.md (29)
/// Gradient: of alpha, (qmax - z) / n where x / s >= qmax - z, (qmin - z) / n where x / s < qmin - z,
/// else 0; for z = qmin that is 1 where x >= alpha. x gets none there. Weight decay on alpha, as
/// published, is that of the optimizer.
/// Domain: alpha is at least mean|x| after a step, as in (4).
/// Source: Choi et al. 2018, PACT, equations (1) to (3).
class Pact : public LearnedRange {
 public:
  std::vector<const char*> names() const override { return {"alpha"}; }
  Values values_of(const ScaleZero& params, const QType& type) const override;
  ScaleZero params_of(const Values& values, int32_t zero_point, const QType& type) const override;
  Values projected(const Values& values, const QType& type) const override;
  LearnedSlope slope(size_t i, const ScaleZero& params, const QType& type) const override;
  bool normalized() const override { return false; }
  int32_t unit(size_t i, const ScaleZero& params, const QType& type) const override;
  bool ends_at_codes() const override { return true; }
};

}  // namespace quantrain::quant
