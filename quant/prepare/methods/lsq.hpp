#pragma once

#include "quant/prepare/methods/learned_range.hpp"

namespace quantrain::quant {

/// LSQ: the scale is learned; the zero point is that of the first tensor.   docs/quantization.md
/// (4)
/// Source: Esser et al. 2020, Learned Step Size Quantization.
class Lsq : public LearnedRange {
 public:
  std::vector<const char*> names() const override { return {"scale"}; }
  bool starts_from_observer() const override { return false; }
  Values values_of(const ScaleZero& params, const QType& type) const override;
  ScaleZero params_of(const Values& values, int32_t zero_point, const QType& type) const override;
  Values projected(const Values& values, const QType& type) const override;
  LearnedSlope slope(size_t i, const ScaleZero& params, const QType& type) const override;
  int32_t unit(size_t i, const ScaleZero& params, const QType& type) const override;
};

}  // namespace quantrain::quant
