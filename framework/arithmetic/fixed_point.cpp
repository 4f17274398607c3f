#include "framework/arithmetic/fixed_point.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {

Multiplier make_multiplier(double multiplier) {
  const DefaultRounding rounding;
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
    throw QuantError(
        "requantize",
        "multiplier ",
        multiplier,
        " is 2^30 or more: the output's scale is too small for the scales of the inputs");
  }
  return {static_cast<int32_t>(m0), shift};
}

Multiplier sum_multiplier(double sum_scale, float scale_y) {
  const DefaultRounding rounding;
  return make_multiplier(sum_scale / static_cast<double>(scale_y));
}

Multiplier rescale_multiplier(float scale_x, float scale_y) {
  const DefaultRounding rounding;
  return make_multiplier(static_cast<double>(scale_x) / static_cast<double>(scale_y));
}

Multiplier mean_multiplier(float scale_x, int64_t n, float scale_y) {
  const DefaultRounding rounding;
  return make_multiplier(static_cast<double>(scale_x) /
                         (static_cast<double>(n) * static_cast<double>(scale_y)));
}

AddMultipliers make_add_multipliers(double a, double b) {
  const DefaultRounding rounding;
  const Multiplier of_a = make_multiplier(a);
  const Multiplier of_b = make_multiplier(b);
  const Multiplier& larger = a >= b ? of_a : of_b;
  if (larger.m0 == 0) return {0, 0, larger.shift};
  const auto at_shift = [&](double multiplier) {
    return static_cast<int32_t>(std::llround(std::ldexp(multiplier, larger.shift)));
  };
  return {a >= b ? of_a.m0 : at_shift(a), a >= b ? at_shift(b) : of_b.m0, larger.shift};
}

AddMultipliers add_multipliers(float scale_a, float scale_b, float scale_y) {
  const DefaultRounding rounding;
  return make_add_multipliers(static_cast<double>(scale_a) / static_cast<double>(scale_y),
                              static_cast<double>(scale_b) / static_cast<double>(scale_y));
}

}  // namespace quantrain
