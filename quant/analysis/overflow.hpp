#pragma once

#include <cstdint>

namespace quantrain::quant {

/// Largest magnitude that the int32 accumulator of one output channel can reach on its way,
/// whatever the input: |bias - zero_x * sum(w)| + 255 * max(sum of positive w, sum of |negative
/// w|).   docs/quantization.md (7)
int64_t accumulator_bound(int64_t length, const int8_t* weights, int32_t bias, int32_t zero_x);

/// Bounds have to stay below this.
inline constexpr int64_t kAccumulatorLimit = int64_t{1} << 31;

/// Longest sum that any narrow 8-bit weights allow, biases aside: 33,000 * 2 * 255 * 127 < 2^31.
/// docs/quantization.md (7)
inline constexpr int64_t kLongestReduction = 33000;

}  // namespace quantrain::quant
