#include "quant/prepare/methods/lsq.hpp"

namespace quantrain::quant {

LearnedRange::Values Lsq::values_of(const ScaleZero& params, const QType& /*type*/) const {
  return {params.scale};
}

ScaleZero Lsq::params_of(const Values& values, int32_t zero_point, const QType& /*type*/) const {
  return {learned_scale(values[0]), zero_point};
}

LearnedRange::Values Lsq::projected(const Values& values, const QType& /*type*/) const {
  return {learned_scale(values[0])};
}

LearnedSlope Lsq::slope(size_t /*i*/, const ScaleZero& params, const QType& type) const {
  const auto zero = static_cast<float>(params.zero_point);
  return {1.0f, static_cast<float>(type.qmin()) - zero, static_cast<float>(type.qmax()) - zero};
}

int32_t Lsq::unit(size_t /*i*/, const ScaleZero& /*params*/, const QType& /*type*/) const {
  return 1;
}

}  // namespace quantrain::quant
