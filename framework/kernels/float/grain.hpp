#pragma once

#include <algorithm>
#include <cstdint>

// Sizes of the blocks into which loops split their work for threads. They depend on the problem
// size alone.
namespace quantrain::kernels {

/// Elements of a block: a few microseconds of work. The number is a multiple of 8, so that no two
/// blocks share a byte of a mask.
inline constexpr int64_t kGrain = 32768;
/// The same for loops that take longer for each element: some nanoseconds, for example for a square
/// root, or for a call of a function or the lookup of a result.
inline constexpr int64_t kSlowGrain = 1 << 14;
inline constexpr int64_t kFunctionGrain = 1 << 12;

/// Rows of a block.
inline int64_t row_grain(int64_t columns) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1));
}

}  // namespace quantrain::kernels
