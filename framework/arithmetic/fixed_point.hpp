#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quantrain {

/// A nonnegative real multiplier as m0 * 2^-shift, m0 in [2^30, 2^31) or 0, shift in 1..62.
/// docs/quantization.md (8)
struct Multiplier {
  int32_t m0 = 0;
  int32_t shift = 1;

  friend bool operator==(const Multiplier&, const Multiplier&) = default;
};

/// m, e = frexp(multiplier); m0 = llround(m * 2^31); if m0 is 2^31, m0 = 2^30 and e = e + 1;
/// shift = 31 - e. If shift is above 62 or the multiplier is 0, m0 = 0 and shift = 62.
/// docs/quantization.md (8)
/// Throws: QuantError if the multiplier is negative or not finite, or m0 * 2^-shift is 2^30 or more
/// (shift < 1).
Multiplier make_multiplier(double multiplier);

/// Real value of one unit of a sum of products: scale_x * scale_w.   docs/quantization.md (7)
inline double sum_scale(float scale_x, float scale_w) {
  return static_cast<double>(scale_x) * static_cast<double>(scale_w);
}

// Multipliers of the equations in docs/quantization.md. The simulation and the integer operations
// both call these functions, because the same divisions in another order could give another m0.
// These functions throw like make_multiplier.

/// Multiplier of a sum of products: M = sum_scale / scale_y.   docs/quantization.md (8)
Multiplier sum_multiplier(double sum_scale, float scale_y);
/// Multiplier that rescales a code: M = scale_x / scale_y.   docs/quantization.md (8), (11)
Multiplier rescale_multiplier(float scale_x, float scale_y);
/// Multiplier of a sum of n codes: M = scale_x / (n * scale_y).   docs/quantization.md (10)
Multiplier mean_multiplier(float scale_x, int64_t n, float scale_y);

/// Multiplier just above 1 / n, for the mean of n codes: shift = 30 + ceil(log2 n),
/// m0 = floor(2^shift / n) + 1. n lies in [1, kMostMeanCodes].   docs/quantization.md (10)
Multiplier code_mean_multiplier(int64_t n);
inline constexpr int64_t kMostMeanCodes = (int64_t{1} << 21) - 1;

/// (product + 2^(shift-1)) >> shift: nearest integer, ties toward +infinity.
/// docs/quantization.md (8)
inline int64_t rounding_shift(int64_t product, int32_t shift) {
  return (product + (int64_t{1} << (shift - 1))) >> shift;
}

/// The same in unsigned arithmetic, if |product| <= 2^62 and shift is in 1..62. For C99, where >>
/// of a negative number is not portable, and for vector units without a 64-bit arithmetic shift.
/// docs/quantization.md (8)
inline int64_t rounding_shift_unsigned(int64_t product, int32_t shift) {
  constexpr uint64_t kBias = uint64_t{1} << 62;
  const uint64_t sum = static_cast<uint64_t>(product) + (uint64_t{1} << (shift - 1)) + kBias;
  return static_cast<int64_t>(sum >> shift) - static_cast<int64_t>(kBias >> shift);
}

/// ((acc * m0 + 2^(shift-1)) >> shift) + zero_point: the code before the clamp.
/// docs/quantization.md (8)
inline int64_t requantize_unclamped(int32_t acc, Multiplier multiplier, int32_t zero_point) {
  return rounding_shift(int64_t{acc} * multiplier.m0, multiplier.shift) + zero_point;
}

/// clamp(((acc * m0 + 2^(shift-1)) >> shift) + zero_point, lo, hi), in 64 bits up to the clamp.
/// docs/quantization.md (8)
inline int32_t requantize(
    int32_t acc, Multiplier multiplier, int32_t zero_point, int32_t lo, int32_t hi) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(requantize_unclamped(acc, multiplier, zero_point), lo, hi));
}

/// The multipliers of an addition, one for each operand. All use the shift of the largest one.
/// docs/quantization.md (11)
struct AddMultipliers {
  std::vector<int32_t> m;
  int32_t shift = 1;

  friend bool operator==(const AddMultipliers&, const AddMultipliers&) = default;
};

/// m[i] = llround(M[i] * 2^shift) with M[i] = scale_i / scale_y. shift is the one that
/// make_multiplier gives to the largest M[i]. All m[i] are 0 if the m0 of the largest M[i] is 0.
/// docs/quantization.md (11)
/// Throws: QuantError like make_multiplier, for each M[i].
AddMultipliers make_add_multipliers(const std::vector<double>& multipliers);
/// The same from the scales of the operands and the output.   docs/quantization.md (11)
AddMultipliers add_multipliers(const std::vector<float>& scales, float scale_y);

/// clamp(((sum over i of x_minus_zero[i] * m.m[i] + 2^(shift-1)) >> shift) + zero_y, lo, hi).
/// docs/quantization.md (11)
/// Throws: ShapeError unless there are as many multipliers as operands.
int32_t requantize_add(const std::vector<int32_t>& x_minus_zero,
                       const AddMultipliers& m,
                       int32_t zero_y,
                       int32_t lo,
                       int32_t hi);

}  // namespace quantrain
