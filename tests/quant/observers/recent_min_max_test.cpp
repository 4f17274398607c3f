#include "quant/observers/recent_min_max.hpp"

#include <array>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/observers/spec.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/quant/observers/observers.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::kInfinity;
using quantrain::test::kNan;
using quantrain::test::kU8;
using quantrain::test::vector;

Range range_of(const Observer& observer) { return observer.ranges(kU8, QScheme::kAffine)[0]; }

void observe(Observer& observer, Range extremes) {
  observer.observe_range(std::array{extremes}, 8);
}

}  // namespace

TEST_CASE("a recent range covers this window of batches and the one before it",
          "[quant][observer]") {
  RecentMinMaxObserver observer({.batches = 2});
  // Windows: batches 1 and 2, 3 and 4, 5 to 8, 9 to 16. In batch i, the largest value is -i.
  const std::array<float, 16> largest_seen{
      -1, -1, -1, -1, -3, -3, -3, -3, -5, -5, -5, -5, -5, -5, -5, -5};
  for (size_t i = 0; i < largest_seen.size(); ++i) {
    CAPTURE(i);
    const auto value = -static_cast<float>(i + 1);
    observe(observer, {value, value});
    CHECK(range_of(observer) == Range{value, largest_seen[i]});
  }
  observe(observer, {-17, -17});
  CHECK(range_of(observer) == Range{-17, -9});
}

TEST_CASE("a recent range grows at once", "[quant][observer]") {
  RecentMinMaxObserver observer;
  observe(observer, {-0.5f, 0.25f});
  CHECK(range_of(observer) == Range{-0.5f, 0.25f});
  observe(observer, {-0.25f, 7.0f});
  CHECK(range_of(observer) == Range{-0.5f, 7.0f});
}

TEST_CASE("a recent range keeps what comes back once in hundreds of batches", "[quant][observer]") {
  // 500 batches hold the value 1 once, at a random place; the others stay below 0.1.
  RecentMinMaxObserver observer;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const int64_t place = Random(7, epoch).below(500);
    for (int64_t i = 0; i < 500; ++i) {
      observe(observer, {0.0f, i == place ? 1.0f : 0.1f});
      if (epoch > 0 && range_of(observer).max != 1.0f) {
        CAPTURE(epoch, i);
        FAIL_CHECK("the value is not covered");
      }
    }
  }
}

TEST_CASE("a recent range follows a network whose values shrink", "[quant][observer]") {
  RecentMinMaxObserver observer({.batches = 64});
  for (int i = 0; i < 300; ++i) observe(observer, {-8.0f, 8.0f});
  for (int i = 0; i < 4 * 300; ++i) observe(observer, {-1.0f, 1.0f});
  CHECK(range_of(observer) == Range{-1.0f, 1.0f});
}

TEST_CASE("a recent range refuses a state that no batches give", "[quant][observer]") {
  for (const char* const name : {"latest", "earlier"}) {
    CAPTURE(name);
    for (const Range bad : {Range{kNan, 0}, Range{0, kInfinity}, Range{1, 0}}) {
      RecentMinMaxObserver observer({}, {1, 2, "fc"});
      const Tensor x = Tensor::from({1, 2}, std::vector<float>{1, 2});
      observer.observe(x);
      const NamedState entry = quantrain::test::entry_of(observer.state(), name);
      quantrain::test::writable(entry.tensor)[2] = bad.min;
      quantrain::test::writable(entry.tensor)[3] = bad.max;
      const std::string text = std::string("[fc] recent_min_max observer: state \"") + name +
                               "\" is not finite or not in order: channel 1";
      QUANTRAIN_CHECK_ERROR(observer.observe(x), DataError, text);
      QUANTRAIN_CHECK_ERROR(observer.ranges(kU8, {}), DataError, text);
    }
  }
}

TEST_CASE("a recent range needs a window of at least one batch", "[quant][observer]") {
  QUANTRAIN_CHECK_ERROR(RecentMinMaxObserver({.batches = 0}), QuantError, "at least 1, got 0");
  RecentMinMaxObserver observer({.batches = 1});
  for (const float x : {4.0f, 3.0f, 2.0f, 1.0f}) observe(observer, {x, x});
  CHECK(range_of(observer) == Range{1.0f, 3.0f});  // windows: 4; 3; 2 and 1
}

}  // namespace quantrain::quant
