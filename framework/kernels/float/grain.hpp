#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/core/parallel.hpp"

// Sizes of the blocks into which loops split their work for threads. Except for enough_tasks(),
// they depend on the problem size alone.
namespace quantrain::kernels {

/// Elements of a block: a few microseconds of work. The number is a multiple of 16, so that no two
/// blocks share a byte of a mask, and blocks start with a whole vector.
inline constexpr int64_t kGrain = 32768;
/// Elements of a block if the work on each takes about twice as long.
inline constexpr int64_t kSlowGrain = 1 << 14;
/// Elements of a block in an optimizer's step, which reads up to five arrays from distant caches.
inline constexpr int64_t kStepGrain = 1 << 13;
/// Elements of a block that several passes read, so that it stays in the caches of its thread.
inline constexpr int64_t kRereadGrain = 1 << 13;
/// Elements of a block if each needs a call of a function or a lookup in a table.
inline constexpr int64_t kFunctionGrain = 1 << 12;

/// With this many tasks, threads finish a loop at about the same time. Of more than 8 threads, each
/// gets about three tasks. For loops whose results do not depend on the split.
inline int64_t enough_tasks() {
  constexpr int64_t kFew = 8;
  const int64_t workers = threads();
  return workers > kFew ? 3 * workers : 2 * kFew;
}

/// Rows of a block of about `grain` elements.
inline int64_t row_grain(int64_t columns, int64_t grain = kGrain) {
  return std::max<int64_t>(1, grain / std::max<int64_t>(columns, 1));
}

}  // namespace quantrain::kernels
