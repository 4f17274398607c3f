#pragma once

#include <cstdint>

#include "framework/core/splitmix64.hpp"

namespace quantrain {

/// Pseudo-random numbers that are the same on every machine. The class does not use the standard
/// library's distributions. The only libm function it uses is sqrt, whose rounding IEEE 754
/// defines. The state is a key and a counter. Generators with different (seed, stream, index) are
/// independent. With the epoch as `stream` and the sample's number as `index`, the random numbers
/// for a sample depend only on seed, epoch and index.
/// Source: SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0, uint64_t index = 0)
      : key_(SplitMix64::key(seed, stream, index)) {}

  uint64_t bits() { return SplitMix64::mix(key_ + ++counter_ * SplitMix64::kStep); }
  /// In [0, 1), a multiple of 2^-24.
  float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-24f; }
  /// In [low, high), except that rounding can produce high.
  float uniform(float low, float high);
  /// In [0, n), without bias.   Throws: DataError if n is below 1.
  int64_t below(int64_t n);
  /// Standard normal, by Marsaglia's polar method, with a logarithm that does not use libm.
  float normal();

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace quantrain
