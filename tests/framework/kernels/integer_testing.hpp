#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"
#include "framework/kernels/integer/integer.hpp"
#include "tests/catch.hpp"
#include "tests/threads.hpp"

namespace quantrain::test {

/// Sizes around multiples of vector widths and of 8, the number of bits in a byte of a mask.
inline const int64_t kSizes[] = {
    0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257};

/// n floats in [-range, range).
inline std::vector<float> random_floats(int64_t n, float range, Random& random) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(random.uniform(-range, range));
  return x;
}

/// Bit i of a mask.
inline bool bit(const std::vector<uint8_t>& mask, size_t i) {
  return (mask[i / 8] >> i % 8 & 1) != 0;
}
/// The number of bytes that n bits take.
inline size_t bytes(int64_t n) { return static_cast<size_t>((n + 7) / 8); }

/// Runs body once for every instruction set that this CPU can run, reference first.
template <class Body>
void for_each_isa(const Body& body) {
  const Isa before = chosen_isa();
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    INFO("instruction set " << isa_name(isa));
    body();
  }
  set_isa(before);
}

/// Runs body with several numbers of threads.
template <class Body>
void for_each_thread_count(const Body& body) {
  for (const int n : thread_counts({1, 2, 3, 7})) {
    set_threads(n);
    INFO("threads " << n);
    body();
  }
  set_threads(0);
}

inline std::vector<uint8_t> random_codes(int64_t n, Random& random) {
  std::vector<uint8_t> codes(static_cast<size_t>(n));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random.below(256));
  return codes;
}

inline std::vector<int8_t> random_weights(int64_t n, Random& random) {
  std::vector<int8_t> weights(static_cast<size_t>(n));
  for (int8_t& w : weights) w = static_cast<int8_t>(random.below(256) - 128);
  return weights;
}

/// Multipliers for n channels. If `any` is false, they are typical. If `any` is true, they are
/// drawn from all m0 and shifts that docs/quantization.md (8) allows.
struct Multipliers {
  std::vector<int32_t> m0, shift;
  int32_t zero_point, lo, hi;

  Multipliers(int64_t n, bool any, Random& random) {
    for (int64_t i = 0; i < n; ++i) {
      const bool none = any && random.below(8) == 0;
      m0.push_back(none ? 0 : static_cast<int32_t>((int64_t{1} << 30) + random.below(1 << 30)));
      shift.push_back(static_cast<int32_t>(any ? 1 + random.below(62) : 36 + random.below(8)));
    }
    zero_point = static_cast<int32_t>(random.below(256));
    lo = static_cast<int32_t>(random.below(100));
    hi = static_cast<int32_t>(150 + random.below(106));
  }

  kernels::RequantizeU8 view() const { return {m0.data(), shift.data(), zero_point, lo, hi}; }
  uint8_t operator()(int32_t acc, int64_t channel) const {
    const auto c = static_cast<size_t>(channel);
    return static_cast<uint8_t>(requantize(acc, {m0[c], shift[c]}, zero_point, lo, hi));
  }
};

}  // namespace quantrain::test
