#pragma once

#include <cstdint>
#include <functional>

#include "framework/core/buffer.hpp"

namespace quantrain::test {

/// Bytes that run() takes from the pool at a time.
inline int64_t memory_taken(const std::function<void()>& run) {
  const int64_t before = pool::counters().bytes_in_use;
  // Fills the pool up to its old peak, so that the run sets a new peak.
  const Buffer<uint8_t> highest(pool::counters().peak_bytes_in_use - before);
  const int64_t base = pool::counters().bytes_in_use;
  run();
  return pool::counters().peak_bytes_in_use - base;
}

}  // namespace quantrain::test
