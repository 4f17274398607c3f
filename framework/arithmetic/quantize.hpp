#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "framework/arithmetic/qparams.hpp"

namespace quantrain {

/// Scale and zero point of one tensor or channel.
struct ScaleZero {
  float scale = 1.0f;
  int32_t zero_point = 0;

  friend bool operator==(const ScaleZero&, const ScaleZero&) = default;
};

/// Chooses the parameters for a range, after widening it to contain 0.   docs/quantization.md (2)
/// Affine: scale = (max - min) / (qmax - qmin), zero_point = clamp(qmin - half_even(min / scale)).
/// Symmetric: scale = max|x| / qmax for narrow types, 2 max|x| / (qmax - qmin) for other types;
/// zero_point = 0 for signed types, the middle code (qmax + 1) / 2 for unsigned types.
/// Unsigned, 1 bit: scale = max(max, 0), zero_point = 0, whatever the scheme.   (27)
/// The scale is computed in double and rounded to float32 once. half_even(min / scale) is computed
/// as in (3), so that min gets code qmin. If the scale would be 0 or subnormal, it is 1.
/// Throws: DataError naming `where` if an end is NaN or infinite or min > max.
ScaleZero choose_params(Range range, const QType& type, QScheme scheme, std::string_view where);
/// The same for each channel along `axis`, or for a single range if axis < 0.
/// Throws: as above; QuantError if validate() refuses the type or the result.
QParams choose_params(std::span<const Range> ranges,
                      int axis,
                      const QType& type,
                      QScheme scheme,
                      std::string_view where);

/// Nearest integer, ties to even, in float32. Assumes the default rounding mode.
inline float half_even(float x) { return __builtin_rintf(x); }

/// Code before the clamp: half_even(x / scale) + zero_point. A float, because it may not fit in an
/// integer.
/// docs/quantization.md (3)
inline float unclamped_code(float x, float scale, int32_t zero_point) {
  return half_even(x / scale) + static_cast<float>(zero_point);
}

/// q = clamp(half_even(x / scale) + zero_point, qmin, qmax), in float32 and with a true division.
/// x must not be NaN.   docs/quantization.md (3)
inline int32_t quantize(float x, float scale, int32_t zero_point, int32_t qmin, int32_t qmax) {
  const float code = unclamped_code(x, scale, zero_point);
  return static_cast<int32_t>(std::clamp(code, static_cast<float>(qmin), static_cast<float>(qmax)));
}

/// The code of a weight of 1 bit: +1 if w >= 0, else -1.   docs/quantization.md (27)
inline int32_t sign_code(float w) { return w >= 0.0f ? 1 : -1; }

/// real = scale * (q - zero_point).   docs/quantization.md (1)
inline float dequantize(int32_t q, float scale, int32_t zero_point) {
  return scale * static_cast<float>(q - zero_point);
}

/// Clamped straight-through estimator: whether the gradient passes.   docs/quantization.md (4)
inline bool gradient_passes(float x, float scale, int32_t zero_point, int32_t qmin, int32_t qmax) {
  const float code = unclamped_code(x, scale, zero_point);
  return code >= static_cast<float>(qmin) && code <= static_cast<float>(qmax);
}

/// Scale of one output channel of weights. For narrow range it is
/// max(max|w| / qmax, |bias| / (scale_x * 2^30)), or 1 if that would be 0 or subnormal. For full
/// range the first term is 2 max|w| / (qmax - qmin). With 1 bit, max_abs is the mean of |w|.
/// docs/quantization.md (5), (27)
/// Throws: DataError naming `where` if an argument is NaN or infinite; QuantError if scale_x is not
/// positive, or is so small that the bias would need a scale above the range of float32.
float weight_scale(
    float max_abs, float bias, float scale_x, const QType& type, std::string_view where);

// Half the range of an int32 sum is reserved for the bias, the other half for the products.
// docs/quantization.md (6), (7), (10)

/// Largest |bias_q|.
inline constexpr int64_t kLargestBias = int64_t{1} << 30;
/// Largest |q_x - zero_x| of activations of up to 8 bits.
inline constexpr int64_t kLargestDifference = 255;
/// Longest sum of products that is allowed for weights of this type: 33,155 for narrow-range
/// weights of 8 bits, 601,536 of 4 bits, 4,210,752 of 2 bits. It depends on the largest |code|.
inline int64_t longest_reduction(const QType& weight) {
  const int64_t largest = std::max(weight.qmax(), -weight.qmin());
  return (kLargestBias - 1) / (kLargestDifference * largest);
}
/// Largest pooling window whose sum of differences q_x - zero_x fits in int32: 2^31 / 255.
inline constexpr int64_t kLargestWindow = ((int64_t{1} << 31) - 1) / kLargestDifference;

/// bias_q = clamp(half_even(bias / (scale_x * scale_w)), -2^30, 2^30), in double. weight_scale
/// keeps the code within 2^30, but rounding the scale to float32 can move the code by up to 2^6.
/// docs/quantization.md (6)
/// Throws: QuantError if the code's absolute value before the clamp exceeds 2^30 + 2^7.
int32_t quantize_bias(float bias, float scale_x, float scale_w);

}  // namespace quantrain
