#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace quantrain {

/// Index of percentile p among n > 0 sorted values: max(1, ceil(p n / 100)) - 1. A percentage such
/// as 99.9 is not exact in binary, so a rank that exceeds a whole number only by a rounding error
/// counts as that number.   docs/quantization.md (14)
inline int64_t nearest_rank(double p, int64_t n) {
  const double rank = std::ceil(p * static_cast<double>(n) / 100.0 * (1.0 - 1e-12));
  return std::clamp<int64_t>(static_cast<int64_t>(rank), 1, n) - 1;
}

}  // namespace quantrain
