#include "quant/prepare/methods/lsq_plus.hpp"

#include <algorithm>
#include <cmath>

namespace quantrain::quant {

std::string LsqPlus::fault(const QType& type, QScheme scheme) const {
  if (type.bits == 1) return "the zero point of 1 bit is 0: set a learned scale or pact";
  if (scheme != QScheme::kAffine) return "a learned offset needs the affine scheme";
  return "";
}

LearnedRange::Values LsqPlus::values_of(const ScaleZero& params, const QType& /*type*/) const {
  return {params.scale, -params.scale * static_cast<float>(params.zero_point)};
}

ScaleZero LsqPlus::params_of(const Values& values,
                             int32_t /*zero_point*/,
                             const QType& type) const {
  const float scale = learned_scale(values[0]);
  // A scale that is not finite tells of an offset that is not, too.
  if (!std::isfinite(scale) || !std::isfinite(values[1]))
    return {scale + std::abs(values[1]), type.qmin()};
  return {scale, quantize(-values[1], scale, 0, type.qmin(), type.qmax())};
}

LearnedRange::Values LsqPlus::projected(const Values& values, const QType& type) const {
  const float scale = learned_scale(values[0]);
  if (!std::isfinite(scale) || !std::isfinite(values[1])) return values;
  const float low = -scale * static_cast<float>(type.qmax());
  const float high = -scale * static_cast<float>(type.qmin());
  return {scale, std::clamp(values[1], low, high)};
}

LearnedSlope LsqPlus::slope(size_t i, const ScaleZero& /*params*/, const QType& type) const {
  if (i == 1) return {0.0f, 1.0f, 1.0f};
  return {1.0f, static_cast<float>(type.qmin()), static_cast<float>(type.qmax())};
}

int32_t LsqPlus::unit(size_t i, const ScaleZero& /*params*/, const QType& /*type*/) const {
  return i == 0 ? 1 : 0;
}

}  // namespace quantrain::quant
