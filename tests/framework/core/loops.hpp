#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "framework/core/parallel.hpp"
#include "tests/threads.hpp"

namespace quantrain::test {

/// The blocks that a loop is split into, in order.
inline std::vector<std::pair<int64_t, int64_t>> blocks(int64_t n, int64_t grain) {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> all;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    all.emplace_back(begin, end);
  });
  std::sort(all.begin(), all.end());
  return all;
}

/// The threads that run a loop of n blocks.
inline std::set<std::thread::id> threads_of(int64_t n) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallel_for(n, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  return ids;
}

}  // namespace quantrain::test
