#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "framework/core/cpu.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/threads.hpp"

// Helpers for the tests of float kernels.
namespace quantrain::test {

inline std::vector<float> random_floats(int64_t n,
                                        uint64_t seed,
                                        float low = -1.0f,
                                        float high = 1.0f) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = random.uniform(low, high);
  return values;
}

/// The tolerance for sums of up to a few thousand products of numbers below 1 in magnitude. The
/// expected sum is computed in another order or in double. Each addition rounds by at most about
/// half a unit in the last place of the largest partial sum.
struct RoundingTolerance {
  double absolute = 5e-5;
  double relative = 5e-5;

  bool operator()(float actual, float expected) const {
    if (std::isnan(expected)) return std::isnan(actual);
    if (actual == expected) return true;
    return std::abs(static_cast<double>(actual) - static_cast<double>(expected)) <=
           absolute + relative * std::abs(static_cast<double>(expected));
  }
};

/// Index of the first element outside the tolerance, or -1.
template <class Tolerance>
int64_t first_difference(const std::vector<float>& actual,
                         const std::vector<float>& expected,
                         const Tolerance& tolerance) {
  if (actual.size() != expected.size()) return 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!tolerance(actual[i], expected[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

/// Compares bits, so NaN equals NaN and -0 differs from 0.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           uint32_t p = 0;
           uint32_t q = 0;
           std::memcpy(&p, &x, sizeof(p));
           std::memcpy(&q, &y, sizeof(q));
           return p == q;
         });
}

/// Its destructor restores the instruction set and the default number of threads.
class RestoreSettings {
 public:
  RestoreSettings() : isa_(chosen_isa()) {}
  RestoreSettings(const RestoreSettings&) = delete;
  RestoreSettings& operator=(const RestoreSettings&) = delete;
  ~RestoreSettings() {
    set_isa(isa_);
    set_threads(0);
  }

 private:
  Isa isa_;
};

/// Runs f() -> vector<float> on every usable instruction set with 1, 2, 3 and 7 threads. All
/// results must be within the tolerance of `expected`. The bits must be the same with any number of
/// threads and on all instruction sets that fuse multiply-adds.
template <class F, class Tolerance>
void check_everywhere(const std::vector<float>& expected, const Tolerance& tolerance, const F& f) {
  const RestoreSettings restore;
  std::map<Isa, std::vector<float>> one;
  std::vector<float> fused;
  // Threads outside: to set their number starts threads.
  for (const int threads : thread_counts({1, 2, 3, 7})) {
    set_threads(threads);
    for (const Isa isa : usable_isas()) {
      set_isa(isa);
      INFO("isa " << isa_name(isa) << ", threads " << threads);
      std::vector<float> result = f();
      if (threads > 1) {
        REQUIRE(same_bits(result, one.at(isa)));
        continue;
      }
      const int64_t i = first_difference(result, expected, tolerance);
      INFO("element " << i << ": " << (i < 0 ? 0.0f : result[static_cast<size_t>(i)])
                      << ", expected " << (i < 0 ? 0.0f : expected[static_cast<size_t>(i)]));
      REQUIRE(i == -1);
      if (isa >= Isa::kAvx2) {
        if (fused.empty()) fused = result;
        REQUIRE(same_bits(result, fused));
      }
      one[isa] = std::move(result);
    }
  }
}

/// Runs check_everywhere() with the result of the reference kernels as `expected`.
template <class Tolerance, class F>
void check_against_reference(const Tolerance& tolerance, const F& f) {
  std::vector<float> expected;
  {
    const RestoreSettings restore;
    set_isa(Isa::kReference);
    set_threads(1);
    expected = f();
  }
  check_everywhere(expected, tolerance, f);
}

/// Requires equal values, for functions that round in the same way everywhere.
struct Exactly {
  bool operator()(float actual, float expected) const {
    return actual == expected || (std::isnan(actual) && std::isnan(expected));
  }
};

}  // namespace quantrain::test
