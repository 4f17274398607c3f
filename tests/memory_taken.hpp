#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "framework/core/buffer.hpp"
#include "tests/system.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace quantrain::test {

/// Bytes that run() takes from the pool at a time.
inline int64_t memory_taken(const std::function<void()>& run) {
  // Fills the pool up to its old peak, so that the run sets a new peak. The pool rounds sizes up by
  // at most a quarter: one block for all would raise the peak, and each call would raise it more.
  std::vector<Buffer<uint8_t>> highest;
  for (;;) {
    const int64_t left = pool::counters().peak_bytes_in_use - pool::counters().bytes_in_use;
    if (left <= 0) break;
    constexpr int64_t kSmall = 1024;
    highest.emplace_back(left > kSmall ? left / 5 * 4 : left);
  }
  const int64_t base = pool::counters().bytes_in_use;
  run();
  return pool::counters().peak_bytes_in_use - base;
}

/// Bytes that malloc() has given to the program, whether or not they are mapped on their own.
/// Without the pool's blocks of a large page or more, which are mapped without malloc(). 0 if the
/// system does not say.
inline int64_t resident_bytes() {
#if defined(__GLIBC__)
  pool::trim();
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<int64_t>(info.uordblks) + static_cast<int64_t>(info.hblkhd);
#else
  return 0;
#endif
}

/// A number of kB in /proc/self/status, in bytes; 0 if the system has none.
inline int64_t process_memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// Bytes of memory that run() takes at a time, whoever allocates them: how much larger the process
/// gets (Linux; elsewhere 0).
inline int64_t resident_memory_taken(const std::function<void()>& run) {
  pool::trim();
  trim_memory();
  std::ofstream("/proc/self/clear_refs") << 5;  // sets the peak to what is resident now
  const int64_t before = process_memory("VmRSS");
  run();
  return process_memory("VmHWM") - before;
}

}  // namespace quantrain::test
