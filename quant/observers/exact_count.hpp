#pragma once

#include <cmath>
#include <cstdint>

// A count in a tensor of floats. One float is exact only up to 2^24, so two floats {low, high} hold
// low + 2^24 high, with low and high in [0, 2^24).
namespace quantrain::quant {

/// Counts are below this.
inline constexpr int64_t kCountLimit = int64_t{1} << 48;

/// Whether the two floats form a valid count.
inline bool is_count(const float* pair) {
  const auto digit = [](float x) { return x >= 0.0f && x < 0x1p24f && x == std::floor(x); };
  return digit(pair[0]) && digit(pair[1]);
}

inline int64_t get_count(const float* pair) {
  return static_cast<int64_t>(pair[0]) + (static_cast<int64_t>(pair[1]) << 24);
}

inline void set_count(float* pair, int64_t count) {
  pair[0] = static_cast<float>(count & 0xffffff);
  pair[1] = static_cast<float>(count >> 24);
}

}  // namespace quantrain::quant
