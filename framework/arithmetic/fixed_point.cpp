#include "framework/arithmetic/fixed_point.hpp"

#include <bit>
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

Multiplier code_mean_multiplier(int64_t n) {
  const int shift = 30 + static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1)));
  return {static_cast<int32_t>((int64_t{1} << shift) / n) + 1, shift};
}

AddMultipliers make_add_multipliers(const std::vector<double>& multipliers) {
  const DefaultRounding rounding;
  double largest = 0.0;
  for (const double multiplier : multipliers) {
    make_multiplier(multiplier);  // throws unless it is in range
    largest = std::max(largest, multiplier);
  }
  const Multiplier at = make_multiplier(largest);
  AddMultipliers result{.m = {}, .shift = at.shift};
  for (const double multiplier : multipliers) {
    // The largest multiplier's entry in result.m equals at.m0, which may be 0.
    const double scaled = at.m0 == 0 ? 0.0 : std::ldexp(multiplier, at.shift);
    result.m.push_back(static_cast<int32_t>(std::llround(scaled)));
  }
  return result;
}

AddMultipliers add_multipliers(const std::vector<float>& scales, float scale_y) {
  const DefaultRounding rounding;
  std::vector<double> multipliers;
  for (const float scale : scales)
    multipliers.push_back(static_cast<double>(scale) / static_cast<double>(scale_y));
  return make_add_multipliers(multipliers);
}

int32_t requantize_add(const std::vector<int32_t>& x_minus_zero,
                       const AddMultipliers& m,
                       int32_t zero_y,
                       int32_t lo,
                       int32_t hi) {
  if (x_minus_zero.size() != m.m.size()) {
    throw ShapeError("requantize",
                     "a sum takes a multiplier for each operand, got ",
                     m.m.size(),
                     " multipliers for ",
                     x_minus_zero.size(),
                     " operands");
  }
  int64_t sum = 0;
  for (size_t i = 0; i < m.m.size(); ++i) sum += int64_t{x_minus_zero[i]} * m.m[i];
  return static_cast<int32_t>(std::clamp<int64_t>(rounding_shift(sum, m.shift) + zero_y, lo, hi));
}

}  // namespace quantrain
