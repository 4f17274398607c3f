#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "framework/core/buffer.hpp"
#include "framework/kernels/integer/integer.hpp"

// The multipliers of output channels, in the form that kernels read.
namespace quantrain::kernels {

inline constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Bytes of a bit for each channel.
inline constexpr int64_t bit_bytes(int64_t channels) { return (channels + 7) / 8; }

/// The codes of x [rows, channels], which are 0 and 1, as bits: [rows, bit_bytes(channels)].
Buffer<uint8_t> packed_bits(int64_t rows, int64_t channels, const uint8_t* x);
/// The signs of the weights of a convolution without groups, 1 for +1. The bits of each tap's
/// channels begin with a byte.
Buffer<int8_t> packed_signs(const Conv2dShape& s, const int8_t* w);

/// kBlockProducts products make another thread worthwhile; they take about 10 microseconds.
/// kOutputProducts products take as long as the other work for one output: to requantize it by
/// docs/quantization.md (8) and to store it.
inline constexpr int64_t kBlockProducts = int64_t{1} << 21;
inline constexpr int64_t kOutputProducts = 32;

/// The range of shifts in RequantizeU8::usual.
inline constexpr int32_t kLeastShift = 33, kMostShift = 54;
/// The shift for a multiplier of 0, with which the result is the same for any shift.
inline constexpr int32_t kAnyShift = 40;

/// Sets RequantizeU8::usual and left for n channels whose sums lie in [-most, most]. kAnyShift
/// changes nothing, unless left would be more than 14.
inline void set_usual(int64_t n, int64_t most, RequantizeU8& r) {
  int32_t min = kAnyShift, max = kAnyShift;
  for (int64_t i = 0; i < n; ++i) {
    min = std::min(min, r.shift[i]);
    max = std::max(max, r.shift[i]);
  }
  r.left = std::max(0, kLeastShift - min);
  r.usual = r.zero_point >= 0 && r.zero_point <= 255 && max + r.left <= kMostShift &&
            most <= INT32_MAX >> r.left;
}

/// The smallest multiple of 16 that is also a multiple of `channels`. After this many elements,
/// groups of 16 elements have the same channels again.
inline int64_t period_of(int64_t channels) {
  return channels * 16 / std::gcd(channels, int64_t{16});
}

/// The multipliers of `channels` channels for n elements in flat order. They are repeated to fill a
/// period (a multiple of 16), or the first multiple of 16 that holds n elements if that is less.
class PeriodicRequantize {
 public:
  PeriodicRequantize(int64_t n, int64_t channels, const RequantizeU8& r)
      : period_(period_of(channels)),
        size_(std::min(period_, round_up(n, 16))),
        values_(2 * size_),
        requantize_(r) {
    for (int64_t i = 0; i < size_; ++i) {
      values_[i] = r.m0[i % channels];
      values_[size_ + i] = values_[i] != 0 ? r.shift[i % channels] : kAnyShift;
    }
    requantize_.m0 = values_.data();
    requantize_.shift = values_.data() + size_;
    set_usual(size_, INT32_MAX, requantize_);
  }

  int64_t period() const { return period_; }
  const RequantizeU8& requantize() const { return requantize_; }

 private:
  int64_t period_;
  int64_t size_;
  Buffer<int32_t> values_;
  RequantizeU8 requantize_;
};

}  // namespace quantrain::kernels
