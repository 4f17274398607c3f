#include "framework/arithmetic/fixed_point.hpp"

#include <cmath>

#include "framework/core/error.hpp"

namespace quantrain {

Multiplier make_multiplier(double multiplier) {
  if (!std::isfinite(multiplier) || multiplier < 0.0) {
    throw QuantError("requantize", "multiplier is negative or not finite: ", multiplier);
  }
  if (multiplier == 0.0) return {0, 62};
  int exponent = 0;
  int64_t m0 = std::llround(std::frexp(multiplier, &exponent) * 0x1p31);
  if (m0 == int64_t{1} << 31) {
    m0 >>= 1;
    ++exponent;
  }
  const int shift = 31 - exponent;
  if (shift > 62) return {0, 62};
  if (shift < 1) {
    throw QuantError("requantize", "multiplier ", multiplier, " is 2^30 or more: the scales make no sense");
  }
  return {static_cast<int32_t>(m0), shift};
}

AddMultipliers make_add_multipliers(double a, double b) {
  const Multiplier larger = make_multiplier(std::max(a, b));
  make_multiplier(std::min(a, b));  // throws if it is no multiplier
  const auto at_common_shift = [&](double m) {
    return m == std::max(a, b) ? larger.m0
                               : static_cast<int32_t>(std::llround(std::ldexp(m, larger.shift)));
  };
  return {at_common_shift(a), at_common_shift(b), larger.shift};
}

}  // namespace quantrain
