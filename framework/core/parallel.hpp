#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/core/rounding.hpp"

namespace quantrain {

/// Sets the number of threads that quantrain uses, including the caller. With n = 1, no worker is
/// started. Before the first call, and after set_threads(0), loops run in the caller's own TBB
/// arena with all of its threads, but with no more than usable_processors(). If the system allows
/// fewer threads, loops use those, and a line on standard error says so once. Must not be called
/// while loops run, nor from inside a loop. In three cases loops run in the caller alone: if
/// quantrain was built without threads (QUANTRAIN_THREADS=OFF), in a process that fork() made,
/// because it has no workers, and while the caller has a SerialLoops.
/// Throws: DataError if n is negative or above 1024, or is more than 1 in a build without threads.
void set_threads(int n);
int threads();

/// While an object of this class lives, loops that its thread starts run in this thread alone, and
/// threads() returns 1 there. For a task that is one of many, so that it starts no tasks itself.
/// Destroy it in the same thread.
class SerialLoops {
 public:
  [[nodiscard]] SerialLoops();
  ~SerialLoops();
  SerialLoops(const SerialLoops&) = delete;
  SerialLoops& operator=(const SerialLoops&) = delete;
};

namespace detail {
using BlockFunction = void (*)(void* context, int64_t block);
void run_blocks(int64_t blocks, void* context, BlockFunction function);
}  // namespace detail

/// Splits [0, n) into consecutive blocks of `grain` elements and calls body(begin, end) for each,
/// in any order and in parallel. The split depends only on n and grain, never on the number of
/// threads. So a body that writes only to its own block always gives the same bits. Bodies run in
/// the default rounding mode. An exception from a body reaches the caller.
template <class Body>
void parallel_for(int64_t n, int64_t grain, Body&& body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (n <= grain) {
    const DefaultRounding rounding;
    body(int64_t{0}, n);
    return;
  }
  auto block = [&](int64_t i) { body(i * grain, std::min(n, (i + 1) * grain)); };
  using Block = decltype(block);
  detail::run_blocks((n + grain - 1) / grain, std::addressof(block), [](void* context, int64_t i) {
    (*static_cast<Block*>(context))(i);
  });
}

/// n elements are split into this number of blocks, each of at most `most` elements. Unless the
/// number is 1 or n, it is even, so that two threads finish at the same time.
constexpr int64_t even_blocks(int64_t n, int64_t most) {
  most = std::max<int64_t>(most, 1);
  return n <= most ? 1 : std::min(n, (n + 2 * most - 1) / (2 * most) * 2);
}

/// Like parallel_for, but splits n evenly into even_blocks(n, most) blocks; for a few expensive
/// tasks.
template <class Body>
void parallel_for_even(int64_t n, int64_t most, Body&& body) {
  if (n <= 0) return;
  const int64_t blocks = even_blocks(n, most);
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(n * i / blocks, n * (i + 1) / blocks);
  });
}

}  // namespace quantrain
