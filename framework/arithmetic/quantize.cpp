#include "framework/arithmetic/quantize.hpp"

#include <limits>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

// A subnormal scale lacks the precision that the division in (3) needs. A range that would need a
// subnormal scale is treated as a range of 0, which has scale 1.
float usable_scale(double scale) {
  if (scale < static_cast<double>(std::numeric_limits<float>::min())) return 1.0f;
  return static_cast<float>(scale);
}

}  // namespace

ScaleZero choose_params(Range range, const QType& type, QScheme scheme, std::string_view where) {
  const DefaultRounding rounding;
  if (!std::isfinite(range.min) || !std::isfinite(range.max) || range.min > range.max) {
    throw DataError(
        where, "range [", range.min, ", ", range.max, "] is not finite or not in order");
  }
  const bool one_bit = type.bits == 1 && !type.is_signed;
  const double low = one_bit ? 0.0f : std::min(range.min, 0.0f);
  const double high = std::max(range.max, 0.0f);
  const int32_t qmin = type.qmin();
  const int32_t qmax = type.qmax();
  if (scheme == QScheme::kSymmetric && !one_bit) {
    const double limit = std::max(-low, high);
    const double scale = type.narrow ? limit / qmax : 2.0 * limit / (qmax - qmin);
    return {computed(usable_scale(scale)), type.is_signed ? 0 : (qmax + 1) / 2};
  }
  const float scale = computed(usable_scale((high - low) / (qmax - qmin)));
  // Divides in float32 and rounds the quotient, as (3) does, so that (3) maps the lowest value to
  // the code qmin. At a tie, two other ways could give another integer: to divide in double, or to
  // round the difference qmin - quotient.
  const float steps = half_even(static_cast<float>(low) / scale);
  return {scale, std::clamp(qmin - static_cast<int32_t>(steps), qmin, qmax)};
}

QParams choose_params(std::span<const Range> ranges,
                      int axis,
                      const QType& type,
                      QScheme scheme,
                      std::string_view where) {
  validate(type, where);
  QParams params{type, axis, {}, {}};
  for (const Range& range : ranges) {
    const ScaleZero chosen = choose_params(range, type, scheme, where);
    params.scale.push_back(chosen.scale);
    params.zero_point.push_back(chosen.zero_point);
  }
  validate(params, where);
  return params;
}

float weight_scale(
    float max_abs, float bias, float scale_x, const QType& type, std::string_view where) {
  const DefaultRounding rounding;
  if (!std::isfinite(max_abs) || !std::isfinite(bias) || !std::isfinite(scale_x)) {
    throw DataError(where,
                    "weight, bias or input scale is not finite: max|w| ",
                    max_abs,
                    ", bias ",
                    bias,
                    ", scale ",
                    scale_x);
  }
  if (!(scale_x > 0.0f)) throw QuantError(where, "scale of the input is not positive: ", scale_x);
  const double by_weight = type.narrow
                               ? static_cast<double>(max_abs) / type.qmax()
                               : 2.0 * static_cast<double>(max_abs) / (type.qmax() - type.qmin());
  const double by_bias = std::abs(static_cast<double>(bias)) /
                         (static_cast<double>(scale_x) * static_cast<double>(kLargestBias));
  const double scale = std::max(by_weight, by_bias);
  if (scale > static_cast<double>(std::numeric_limits<float>::max())) {
    throw QuantError(where,
                     "bias ",
                     bias,
                     " is too large at input scale ",
                     scale_x,
                     ": it needs a weight scale beyond what a float32 can hold");
  }
  return computed(usable_scale(scale));
}

int32_t quantize_bias(float bias, float scale_x, float scale_w) {
  const DefaultRounding rounding;
  const double code = __builtin_rint(static_cast<double>(bias) / sum_scale(scale_x, scale_w));
  constexpr auto kLargest = static_cast<double>(kLargestBias);
  // Rounding the scale to float32 can move the code above 2^30, by a factor of at most 1 + 2^-24.
  if (!(std::abs(code) <= kLargest + 0x1p7)) {
    throw QuantError(
        "bias", "code ", code, " of bias ", bias, " exceeds 2^30; scales ", scale_x, ", ", scale_w);
  }
  return static_cast<int32_t>(std::clamp(code, -kLargest, kLargest));
}

}  // namespace quantrain
