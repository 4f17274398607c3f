#include "quant/prepare/methods/power_of_two.hpp"

#include <cmath>

namespace quantrain::quant {

ScaleZero with_power_of_two(const ScaleZero& params, const QType& type, QScheme scheme) {
  if (!std::isfinite(params.scale)) return params;
  int exponent = 0;
  const bool is_power = std::frexp(params.scale, &exponent) == 0.5f;
  const float scale = is_power ? params.scale : std::ldexp(1.0f, exponent);
  if (scheme == QScheme::kSymmetric || !std::isfinite(scale)) return {scale, params.zero_point};
  const float low = params.scale * static_cast<float>(type.qmin() - params.zero_point);
  return {scale, quantize(-low, scale, type.qmin(), type.qmin(), type.qmax())};
}

}  // namespace quantrain::quant
