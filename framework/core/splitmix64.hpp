#pragma once

#include <cstdint>

namespace quantrain {

/// SplitMix64 (Steele et al. 2014): number i of a stream is mix(key + i * kStep), i = 1, 2, ...
/// U is uint64_t or a vector of uint64_t. The functions are always inlined, because each kernel
/// compiles them for its own instruction set.
struct SplitMix64 {
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

  template <class U>
  __attribute__((always_inline)) static U mix(U x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  /// The key of a stream; streams of different (seed, stream, index) are independent.
  __attribute__((always_inline)) static uint64_t key(uint64_t seed,
                                                     uint64_t stream,
                                                     uint64_t index) {
    return mix(mix(mix(seed + kStep) + stream + kStep) + index + kStep);
  }
};

}  // namespace quantrain
