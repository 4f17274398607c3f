#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/core/rounding.hpp"

namespace quantrain {

/// Threads that quantrain uses from now on, the caller included; 1 starts no worker. Before the
/// first call, and after set_threads(0), loops run in the caller's own TBB arena with all of its
/// threads. Not to be called while loops run, nor from one. Where quantrain was built without
/// threads (QUANTRAIN_THREADS=OFF), and in a process that fork() made, which has no workers, loops
/// run in the caller, always.
/// Throws: DataError if n is negative, or more than 1 without threads.
void set_threads(int n);
int threads();

namespace detail {
using BlockFunction = void (*)(void* context, int64_t block);
void run_blocks(int64_t blocks, void* context, BlockFunction function);
}  // namespace detail

/// Calls body(begin, end) for the consecutive blocks of `grain` elements that make up [0, n), in
/// any order and in parallel. How the work is cut depends on n and grain alone, never on the number
/// of threads: a body that writes only what its block owns gives the same bits always, and computes
/// in the default rounding mode. An exception from a body reaches the caller.
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

/// How many blocks of at most `most` to make of n elements: one, or n, or an even number, so that
/// two threads are done at the same time.
constexpr int64_t even_blocks(int64_t n, int64_t most) {
  most = std::max<int64_t>(most, 1);
  return n <= most ? 1 : std::min(n, (n + 2 * most - 1) / (2 * most) * 2);
}

/// As parallel_for, but splits n evenly into even_blocks(n, most) blocks; for a few expensive
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
