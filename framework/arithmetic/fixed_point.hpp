#pragma once

#include <algorithm>
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

/// m, e = frexp(multiplier); m0 = llround(m * 2^31), or m0 = 2^30 and e = e + 1 if that is 2^31;
/// shift = 31 - e. If shift is above 62, m0 = 0 and shift = 62.   docs/quantization.md (8)
/// Throws: QuantError if the multiplier is negative, not finite, or 2^30 or more (shift < 1).
Multiplier make_multiplier(double multiplier);

/// Real value of one unit of a sum of products: scale_x * scale_w.   docs/quantization.md (7)
inline double sum_scale(float scale_x, float scale_w) {
  return static_cast<double>(scale_x) * static_cast<double>(scale_w);
}

// Multipliers of the equations in docs/quantization.md. The simulation and the integer operations
// both call these functions, because the same divisions in another order may round to another m0.
// They throw like make_multiplier.

/// Multiplier of a sum of products: M = sum_scale / scale_y.   docs/quantization.md (8)
Multiplier sum_multiplier(double sum_scale, float scale_y);
/// Multiplier of a code: M = scale_x / scale_y.   docs/quantization.md (8), (11)
Multiplier rescale_multiplier(float scale_x, float scale_y);
/// Multiplier of a sum of n codes: M = scale_x / (n * scale_y).   docs/quantization.md (10)
Multiplier mean_multiplier(float scale_x, int64_t n, float scale_y);

/// (product + 2^(shift-1)) >> shift: nearest integer, ties toward +infinity.
/// docs/quantization.md (8)
inline int64_t rounding_shift(int64_t product, int32_t shift) {
  return (product + (int64_t{1} << (shift - 1))) >> shift;
}

/// The same in unsigned arithmetic, for |product| <= 2^62 and shift in 1..62. For C99, where >> of
/// a negative number is not portable, and for vector units without a 64-bit arithmetic shift.
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

/// The two multipliers of an addition. Both have the shift of the larger one.
/// docs/quantization.md (11)
struct AddMultipliers {
  int32_t a = 0;
  int32_t b = 0;
  int32_t shift = 1;

  friend bool operator==(const AddMultipliers&, const AddMultipliers&) = default;
};

/// a = scale_a / scale_y, b = scale_b / scale_y. The larger is converted by make_multiplier, the
/// smaller is llround(multiplier * 2^shift). Both are 0 if the larger one needs a shift above 62.
/// docs/quantization.md (11)
/// Throws: QuantError like make_multiplier, for a and for b.
AddMultipliers make_add_multipliers(double a, double b);
/// The same from the scales of the operands and the output.   docs/quantization.md (11)
AddMultipliers add_multipliers(float scale_a, float scale_b, float scale_y);

/// clamp((((a - zero_a) * m.a + (b - zero_b) * m.b + 2^(shift-1)) >> shift) + zero_y, lo, hi).
/// docs/quantization.md (11)
inline int32_t requantize_add(int32_t a_minus_zero,
                              int32_t b_minus_zero,
                              const AddMultipliers& m,
                              int32_t zero_y,
                              int32_t lo,
                              int32_t hi) {
  const int64_t sum = int64_t{a_minus_zero} * m.a + int64_t{b_minus_zero} * m.b;
  return static_cast<int32_t>(std::clamp<int64_t>(rounding_shift(sum, m.shift) + zero_y, lo, hi));
}

}  // namespace quantrain
