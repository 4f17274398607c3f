#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "quant/prepare/fake_quantize_op.hpp"

namespace quantrain::quant {

/// A method that learns the range of an activation: which parameters a FakeQuantize has in place of
/// an observed range, and what they mean. One file pair for each; estimator.hpp lists them.
/// docs/quantization.md (4), (29)
class LearnedRange {
 public:
  static constexpr size_t kMost = 2;
  /// The parameters of one channel; those beyond names() are 0.
  using Values = std::array<float, kMost>;

  virtual ~LearnedRange() = default;
  /// Why it cannot learn such a range; empty if it can.
  virtual std::string fault(const QType& /*type*/, QScheme /*scheme*/) const { return ""; }
  /// Names of the parameters, at most kMost. Each has one value for each channel.
  virtual std::vector<const char*> names() const = 0;
  /// Whether the first tensor's scale and zero point are those that the observer chooses. If not,
  /// they are those of LSQ.
  virtual bool starts_from_observer() const { return true; }
  /// The values that mean these parameters.
  virtual Values values_of(const ScaleZero& params, const QType& type) const = 0;
  /// What values mean. zero_point: the one that the channel started with. Defined for all values,
  /// because a step of an optimizer may leave the domain.
  virtual ScaleZero params_of(const Values& values,
                              int32_t zero_point,
                              const QType& type) const = 0;
  /// Values of the domain that mean the same.
  virtual Values projected(const Values& values, const QType& type) const = 0;
  /// How y changes with parameter i of a channel.
  virtual LearnedSlope slope(size_t i, const ScaleZero& params, const QType& type) const = 0;
  /// See LearnedParameter.
  virtual bool normalized() const { return true; }
  virtual int32_t unit(size_t i, const ScaleZero& params, const QType& type) const = 0;
  /// See Learning.
  virtual bool ends_at_codes() const { return false; }
};

/// Steps from the zero point to the farthest code.
inline int32_t farthest_code(int32_t zero_point, const QType& type) {
  return std::max(type.qmax() - zero_point, zero_point - type.qmin());
}

}  // namespace quantrain::quant
