#include "framework/core/random.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

constexpr int kDraws = 100000;

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
};

template <class Draw>
Moments moments(const Draw& draw) {
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

// Five standard deviations of the mean of kDraws numbers. About one seed in two million exceeds
// this.
double allowed(double deviation) { return 5.0 * deviation / std::sqrt(double{kDraws}); }

}  // namespace

TEST_CASE("random numbers are the same on every machine", "[core][random]") {
  Random random(42, 7, 3);
  CHECK(random.bits() == 0x64844e0371702112u);
  CHECK(random.bits() == 0x14fbe2dcbebdda0u);
  CHECK(random.uniform() == 0x1.56b984p-1f);
  CHECK(random.uniform(-2.0f, 2.0f) == -0x1.12132p-3f);
  CHECK(random.below(1000) == 36);
  CHECK(random.normal() == -0x1.763578p-1f);
  CHECK(random.normal() == 0x1.173f58p-3f);
  CHECK(random.normal() == 0x1.af32c2p-5f);
}

TEST_CASE("random numbers depend on each of seed, stream and index, and on nothing else",
          "[core][random]") {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t stream = 0; stream < 10; ++stream) {
      for (uint64_t index = 0; index < 10; ++index) {
        first.insert(Random(seed, stream, index).bits());
        CHECK(Random(seed, stream, index).bits() == Random(seed, stream, index).bits());
      }
    }
  }
  CHECK(first.size() == 1000);
}

TEST_CASE("neighbouring streams are not correlated", "[core][random]") {
  double sum = 0.0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    sum +=
        (double{Random(1, 0, i).uniform()} - 0.5) * (double{Random(1, 0, i + 1).uniform()} - 0.5);
  }
  CHECK(std::abs(sum / kDraws) < allowed(1.0 / 12.0));
}

TEST_CASE("uniform numbers fill [0, 1) evenly", "[core][random]") {
  Random random(1);
  int outside = 0;
  const Moments m = moments([&] {
    const float x = random.uniform();
    outside += x < 0.0f || x >= 1.0f || x * 0x1p24f != std::floor(x * 0x1p24f);
    return x;
  });
  CHECK(outside == 0);
  CHECK(std::abs(m.mean - 0.5) < allowed(std::sqrt(1.0 / 12.0)));
  CHECK(std::abs(m.variance - 1.0 / 12.0) < allowed(std::sqrt(1.0 / 180.0)));
}

TEST_CASE("uniform numbers from a range stay inside it", "[core][random]") {
  Random random(2);
  int outside = 0;
  const Moments m = moments([&] {
    const float x = random.uniform(-3.0f, 5.0f);
    outside += x < -3.0f || x >= 5.0f;
    return x;
  });
  CHECK(outside == 0);
  CHECK(std::abs(m.mean - 1.0) < allowed(8.0 * std::sqrt(1.0 / 12.0)));
}

TEST_CASE("all numbers below a bound are equally likely", "[core][random]") {
  Random random(3);
  std::vector<int> counts(7);
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(random.below(7))];
  for (const int count : counts) {
    CHECK(std::abs(count / double{kDraws} - 1.0 / 7.0) < allowed(std::sqrt(6.0) / 7.0));
  }
  for (int i = 0; i < 100; ++i) CHECK(random.below(1) == 0);
}

TEST_CASE("numbers below a bound that does not divide 2^64 are not biased", "[core][random]") {
  // A plain remainder would put 3/8 of the draws into each of the first two thirds, instead of 1/3.
  const int64_t third = int64_t{1} << 61;
  Random random(4);
  int last = 0;
  int outside = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int64_t x = random.below(3 * third);
    outside += x < 0 || x >= 3 * third;
    last += x >= 2 * third;
  }
  CHECK(outside == 0);
  CHECK(std::abs(last / double{kDraws} - 1.0 / 3.0) < allowed(std::sqrt(2.0) / 3.0));
}

TEST_CASE("normal numbers have the moments and tails of the normal distribution",
          "[core][random]") {
  Random random(5);
  int within_one = 0;
  int beyond_two = 0;
  double fourth = 0.0;
  const Moments m = moments([&] {
    const double x = random.normal();
    within_one += std::abs(x) < 1.0;
    beyond_two += x > 2.0;
    fourth += x * x * x * x;
    return x;
  });
  CHECK(std::abs(m.mean) < allowed(1.0));
  CHECK(std::abs(m.variance - 1.0) < allowed(std::sqrt(2.0)));
  CHECK(std::abs(fourth / kDraws - 3.0) < allowed(std::sqrt(96.0)));
  CHECK(std::abs(within_one / double{kDraws} - 0.682689) < allowed(0.4655));
  CHECK(std::abs(beyond_two / double{kDraws} - 0.022750) < allowed(0.1491));
}

TEST_CASE("a bound below 1 is refused", "[core][random]") {
  Random random(1);
  for (const int64_t n : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()})
    QUANTRAIN_CHECK_ERROR(random.below(n), DataError, "expected at least 1");
}

}  // namespace quantrain
