#include "quant/prepare/methods/pact.hpp"

#include <algorithm>
#include <cmath>

namespace quantrain::quant {

LearnedRange::Values Pact::values_of(const ScaleZero& params, const QType& type) const {
  return {params.scale * static_cast<float>(farthest_code(params.zero_point, type))};
}

ScaleZero Pact::params_of(const Values& values, int32_t zero_point, const QType& type) const {
  return {learned_scale(values[0] / static_cast<float>(farthest_code(zero_point, type))),
          zero_point};
}

LearnedRange::Values Pact::projected(const Values& values, const QType& type) const {
  return {std::max(std::abs(values[0]), kSmallestLearnedScale * static_cast<float>(type.levels()))};
}

LearnedSlope Pact::slope(size_t /*i*/, const ScaleZero& params, const QType& type) const {
  const auto n = static_cast<float>(farthest_code(params.zero_point, type));
  return {0.0f,
          static_cast<float>(type.qmin() - params.zero_point) / n,
          static_cast<float>(type.qmax() - params.zero_point) / n};
}

int32_t Pact::unit(size_t /*i*/, const ScaleZero& params, const QType& type) const {
  return farthest_code(params.zero_point, type);
}

}  // namespace quantrain::quant
