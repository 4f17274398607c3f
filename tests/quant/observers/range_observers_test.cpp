#include <array>
#include <cmath>

#include "framework/core/error.hpp"
#include "quant/observers/spec.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/quant/observers/observers.hpp"
#include "tests/tensors.hpp"

// The ranges that observers with a running [min, max] choose.
namespace quantrain::quant {
namespace {

using quantrain::test::kInfinity;
using quantrain::test::kNan;
using quantrain::test::vector;

Tensor counting(int64_t n) {
  Tensor x = Tensor::empty({n});
  for (int64_t i = 0; i < n; ++i) x.mutable_data()[i * 3 % n] = static_cast<float>(i + 1);
  return x;
}

}  // namespace

TEST_CASE("min-max keeps the running extremes", "[quant][observer]") {
  MinMaxObserver observer;
  observer.observe(vector({1, -2, 3}));
  CHECK(observer.range() == Range{-2, 3});
  observer.observe(vector({0.5f}));
  CHECK(observer.range() == Range{-2, 3});
  observer.observe(vector({-4, 2}));
  CHECK(observer.range() == Range{-4, 3});
}

TEST_CASE("a moving average starts at the first batch and moves by its constant",
          "[quant][observer]") {
  MovingAverageObserver observer({.constant = 0.25f});
  observer.observe(vector({-8, 4}));
  CHECK(observer.range() == Range{-8, 4});
  observer.observe(vector({0, 8}));
  CHECK(observer.range() == Range{-6, 5});
  observer.observe(vector({-6, 1}));
  CHECK(observer.range() == Range{-6, 4});

  MovingAverageObserver usual;
  usual.observe(vector({0, 1}));
  usual.observe(vector({0, 2}));
  CHECK(usual.range().max == 1.0f + 0.01f);

  // Two neighbouring floats move towards the same large value. Rounding would put the smaller one
  // above the larger one.
  MovingAverageObserver narrow;
  narrow.observe(vector({std::nextafter(0.0625f, 0.0f), std::nextafter(0.0625f, 1.0f)}));
  narrow.observe(vector({1048577.0f}));
  CHECK(narrow.range().min <= narrow.range().max);
  narrow.observe(vector({0.0f}));
}

TEST_CASE("a percentile is the value of the nearest rank", "[quant][observer]") {
  // For the values 1..1000, the ranks are ceil(0.1 % of 1000) = 1 and ceil(99.9 % of 1000) = 999.
  // 99.9 is not exact in binary, but 99.9 % of 1000 must not count as more than 999.
  PercentileObserver usual;
  usual.observe(counting(1000));
  CHECK(usual.range() == Range{1, 999});
  PercentileObserver longer;
  longer.observe(counting(1001));
  CHECK(longer.range() == Range{2, 1000});
  PercentileObserver quartiles({.low = 25.0, .high = 75.0});
  quartiles.observe(counting(5));  // ranks ceil(1.25) and ceil(3.75)
  CHECK(quartiles.range() == Range{2, 4});
  PercentileObserver everything({.low = 0.0, .high = 100.0});
  everything.observe(counting(10));
  CHECK(everything.range() == Range{1, 10});
  PercentileObserver one;
  one.observe(vector({5}));
  CHECK(one.range() == Range{5, 5});
}

TEST_CASE("percentiles of batches are joined as running extremes", "[quant][observer]") {
  PercentileObserver observer({.low = 25.0, .high = 75.0});
  observer.observe(counting(5));
  observer.observe(vector({-9, 3, 3, 3, 99}));
  CHECK(observer.range() == Range{2, 4});
  observer.observe(vector({-9, -8, 3, 8, 99}));
  CHECK(observer.range() == Range{-8, 8});
}

TEST_CASE("mean and deviation use the population variance", "[quant][observer]") {
  MeanStdObserver observer;
  observer.observe(vector({2, 4, 4, 4, 5, 5, 7, 9}));  // mean 5, variance 32 / 8
  CHECK(observer.range() == Range{-1, 11});
  MeanStdObserver narrow({.k = 0.5f});
  narrow.observe(vector({2, 4, 4, 4, 5, 5, 7, 9}));
  CHECK(narrow.range() == Range{4, 6});
  narrow.observe(vector({3, 3}));
  CHECK(narrow.range() == Range{3, 6});
}

TEST_CASE("a range that overflows is refused", "[quant][observer]") {
  MeanStdObserver observer({}, {.name = "fc"});
  QUANTRAIN_CHECK_ERROR(observer.observe(vector({3e38f, -3e38f})), DataError, "overflows");
  CHECK(observer.count() == 0);
  MovingAverageObserver average;
  average.observe(vector({3e38f}));
  QUANTRAIN_CHECK_ERROR(average.observe(vector({-3e38f})), DataError, "running range overflows");
  CHECK(average.range() == Range{3e38f, 3e38f});
}

TEST_CASE("min_max and moving_average take a batch's extremes, others need its values",
          "[quant][observer]") {
  const std::array three{Range{}, Range{}, Range{}};
  for (const ObserverSpec& spec :
       {ObserverSpec(MinMaxOptions{}), ObserverSpec(MovingAverageOptions{})}) {
    const auto by_value = make_observer(spec, {1, 2});
    const auto by_range = make_observer(spec, {1, 2});
    REQUIRE_FALSE(by_range->needs_values());
    for (const float shift : {0.0f, 1.0f}) {
      by_value->observe(Tensor::from({2, 2}, std::vector<float>{1 + shift, -1, 3, 2 + shift}));
      const std::array extremes{Range{1 + shift, 3}, Range{-1, 2 + shift}};
      by_range->observe_range(extremes, 2);
    }
    CHECK(by_range->ranges({}, {}) == by_value->ranges({}, {}));
    CHECK(by_range->samples() == by_value->samples());
    const std::array bad{Range{0, 1}, Range{0, kInfinity}};
    QUANTRAIN_CHECK_ERROR(by_range->observe_range(bad, 2), DataError, "channel 1");
    QUANTRAIN_CHECK_ERROR(by_range->observe_range(three, 2), ShapeError, "3 channels");
    QUANTRAIN_CHECK_ERROR(by_range->observe_range({}, 2), ShapeError, "0 channels");
    const std::array good{Range{0, 1}, Range{0, 1}};
    QUANTRAIN_CHECK_ERROR(by_range->observe_range(good, -1), DataError, "-1 samples after 4");
    QUANTRAIN_CHECK_ERROR(by_range->observe_range(good, kMostCount), DataError, "cannot count");
    CHECK(by_range->ranges({}, {}) == by_value->ranges({}, {}));
    CHECK(by_range->count() == 2);
  }
  for (const ObserverSpec& spec :
       {ObserverSpec(PercentileOptions{}), ObserverSpec(MeanStdOptions{})}) {
    const std::array one{Range{0, 1}};
    QUANTRAIN_CHECK_ERROR(
        make_observer(spec)->observe_range(one, 1), QuantError, "needs a batch's values");
  }
}

TEST_CASE("an invalid range that was loaded is refused before it is used", "[quant][observer]") {
  MinMaxObserver observer({}, {1, 2, "fc"});
  const Tensor x = Tensor::from({1, 2}, std::vector<float>{1, 2});
  observer.observe(x);
  const auto load = [&](float min, float max) {
    float* const range = quantrain::test::writable(observer.state()[1].tensor);
    range[2] = min;
    range[3] = max;
  };
  REQUIRE(observer.state()[1].name == "range");
  load(1, 0);
  QUANTRAIN_CHECK_ERROR(
      observer.range(), DataError, "[fc] min_max observer: state \"range\" is out");
  QUANTRAIN_CHECK_ERROR(observer.observe(x), DataError, "channel 1 has range [1, 0]");
  QUANTRAIN_CHECK_ERROR(observer.params({}, {}), DataError, "[1, 0]");
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    load(bad, 3);
    QUANTRAIN_CHECK_ERROR(observer.range(), DataError, "state \"range\" holds a NaN or infinity");
    QUANTRAIN_CHECK_ERROR(observer.observe(x), DataError, "[fc]");
  }
  load(-3, 3);
  observer.observe(x);
  CHECK(observer.range(1) == Range{-3, 3});
  CHECK(observer.count() == 2);
}

TEST_CASE("options that are out of their range are refused", "[quant][observer]") {
  QUANTRAIN_CHECK_ERROR(MovingAverageObserver({.constant = 0.0f}), QuantError, "(0, 1]");
  QUANTRAIN_CHECK_ERROR(MovingAverageObserver({.constant = 1.5f}), QuantError, "got 1.5");
  QUANTRAIN_CHECK_ERROR(MovingAverageObserver({.constant = kNan}), QuantError, "nan");
  const auto percentile = [](double low, double high) {
    return PercentileObserver({.low = low, .high = high}).count();
  };
  QUANTRAIN_CHECK_ERROR(percentile(-1, 99), QuantError, "-1 and 99");
  QUANTRAIN_CHECK_ERROR(percentile(50, 50), QuantError, "in order");
  QUANTRAIN_CHECK_ERROR(percentile(1, 101), QuantError, "101");
  for (const float k : {0.0f, -1.0f, kInfinity})
    QUANTRAIN_CHECK_ERROR(MeanStdObserver({.k = k}), QuantError, "k must be positive");
}

}  // namespace quantrain::quant
