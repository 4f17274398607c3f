#include "quant/observers/observer.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"
#include "quant/observers/mean_std.hpp"
#include "quant/observers/min_max.hpp"
#include "quant/observers/moving_average.hpp"
#include "quant/observers/percentile.hpp"
#include "quant/observers/spec.hpp"
#include "tests/catch.hpp"
#include "tests/threads.hpp"

namespace quantrain::quant {
namespace {

constexpr std::array kKinds{ObserverKind::kMinMax,
                            ObserverKind::kMovingAverage,
                            ObserverKind::kPercentile,
                            ObserverKind::kMeanStd};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor vector(std::initializer_list<float> values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, std::vector<float>(values));
}

Tensor counting(int64_t n) {
  Tensor x = Tensor::empty({n});
  for (int64_t i = 0; i < n; ++i) x.mutable_data()[i * 3 % n] = static_cast<float>(i + 1);
  return x;
}

Tensor normal(const Shape& shape) {
  Tensor x = Tensor::empty(shape);
  Random random(3);
  float* values = x.mutable_data();
  for (int64_t i = 0; i < x.elements(); ++i) values[i] = random.normal();
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
  MovingAverageObserver observer(0.25f);
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
}

TEST_CASE("a percentile is the value of the nearest rank", "[quant][observer]") {
  // Of 1..1000: numbers ceil(0.1 % of 1000) = 1 and ceil(99.9 %) = 999. 99.9 is no binary fraction,
  // and its product with 1000 must not count as a little more than 999.
  PercentileObserver usual;
  usual.observe(counting(1000));
  CHECK(usual.range() == Range{1, 999});
  PercentileObserver longer;
  longer.observe(counting(1001));
  CHECK(longer.range() == Range{2, 1000});
  PercentileObserver quartiles(25.0, 75.0);
  quartiles.observe(counting(5));  // numbers ceil(1.25) and ceil(3.75)
  CHECK(quartiles.range() == Range{2, 4});
  PercentileObserver everything(0.0, 100.0);
  everything.observe(counting(10));
  CHECK(everything.range() == Range{1, 10});
  PercentileObserver one;
  one.observe(vector({5}));
  CHECK(one.range() == Range{5, 5});
}

TEST_CASE("percentiles of batches are joined as running extremes", "[quant][observer]") {
  PercentileObserver observer(25.0, 75.0);
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
  MeanStdObserver narrow(0.5f);
  narrow.observe(vector({2, 4, 4, 4, 5, 5, 7, 9}));
  CHECK(narrow.range() == Range{4, 6});
  narrow.observe(vector({3, 3}));
  CHECK(narrow.range() == Range{3, 6});
}

TEST_CASE("an observer along an axis sees each channel as one of its own", "[quant][observer]") {
  const Tensor x = normal({5, 3, 4});
  for (const ObserverKind kind : kKinds) {
    CAPTURE(to_string(kind));
    for (int axis = 0; axis < 3; ++axis) {
      CAPTURE(axis);
      auto observer = make_observer({.kind = kind}, axis, "layer");
      CHECK(observer->channels() == 0);
      observer->observe(x);
      REQUIRE(observer->channels() == static_cast<size_t>(x.dim(axis)));
      const std::array<int64_t, 3> stride{12, 4, 1};
      for (int64_t c = 0; c < x.dim(axis); ++c) {
        std::vector<float> channel;
        for (int64_t i = 0; i < x.elements(); ++i) {
          if (i / stride[static_cast<size_t>(axis)] % x.dim(axis) == c)
            channel.push_back(x.data()[i]);
        }
        auto alone = make_observer({.kind = kind});
        alone->observe(Tensor::from({static_cast<int64_t>(channel.size())}, channel));
        const Range range = observer->range(static_cast<size_t>(c));
        // Sums in double come in another order: the last bit of the float may differ.
        CHECK(range.min == test::Approx(alone->range().min).epsilon(1e-6));
        CHECK(range.max == test::Approx(alone->range().max).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("an observer counts batches and samples until it is reset", "[quant][observer]") {
  for (const ObserverKind kind : kKinds) {
    auto observer = make_observer({.kind = kind}, -1, "conv1");
    QUANTRAIN_CHECK_ERROR(observer->range(), QuantError, "has seen no data");
    observer->observe(normal({8, 2}));
    observer->observe(normal({4, 2}));
    observer->observe(Tensor::full({}, 1.0f));
    CHECK(observer->count() == 3);
    CHECK(observer->samples() == 13);
    observer->reset();
    CHECK(observer->count() == 0);
    CHECK(observer->samples() == 0);
    QUANTRAIN_CHECK_ERROR(observer->range(), QuantError, "[conv1]");
    observer->observe(Tensor::full({2}, 1.0f));
    CHECK(observer->range() == Range{1, 1});
  }
}

TEST_CASE("a reset observer takes another number of channels", "[quant][observer]") {
  MinMaxObserver observer(1, "conv1");
  observer.observe(normal({2, 3}));
  QUANTRAIN_CHECK_ERROR(observer.observe(normal({2, 4})), ShapeError, "4 channels along axis 1");
  CHECK(observer.count() == 1);
  observer.reset();
  observer.observe(normal({2, 4}));
  CHECK(observer.channels() == 4);
}

TEST_CASE("an observer refuses NaN, infinity and emptiness and stays as it was",
          "[quant][observer]") {
  for (const ObserverKind kind : kKinds) {
    CAPTURE(to_string(kind));
    auto observer = make_observer({.kind = kind}, -1, "block1.conv");
    observer->observe(vector({1, 2}));
    const Range before = observer->range();
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      QUANTRAIN_CHECK_ERROR(observer->observe(vector({1, bad, 2})), DataError, "NaN or infinity");
      QUANTRAIN_CHECK_ERROR(observer->observe(vector({bad})), DataError, "[block1.conv]");
      QUANTRAIN_CHECK_ERROR(observer->observe(vector({bad})), DataError, to_string(kind).data());
    }
    QUANTRAIN_CHECK_ERROR(
        observer->observe(Tensor::empty({0, 3})), DataError, "empty batch [0, 3]");
    CHECK(observer->range() == before);
    CHECK(observer->count() == 1);
  }
  MinMaxObserver channels(1, "fc");
  QUANTRAIN_CHECK_ERROR(channels.observe(vector({1, 2})), ShapeError, "no axis 1 in [2]");
  QUANTRAIN_CHECK_ERROR(channels.observe(Tensor::from({1, 3}, std::vector<float>{0, kNan, 0})),
                        DataError,
                        "channel 1");
  channels.observe(normal({4, 2}));
  QUANTRAIN_CHECK_ERROR(channels.range(2), QuantError, "no channel 2, it has 2");
}

TEST_CASE("a range that overflows is refused", "[quant][observer]") {
  MeanStdObserver observer(3.0f, -1, "fc");
  QUANTRAIN_CHECK_ERROR(observer.observe(vector({3e38f, -3e38f})), DataError, "overflows");
  CHECK(observer.count() == 0);
  MovingAverageObserver average;
  average.observe(vector({3e38f}));
  QUANTRAIN_CHECK_ERROR(average.observe(vector({-3e38f})), DataError, "running range overflows");
  CHECK(average.range() == Range{3e38f, 3e38f});
}

TEST_CASE("min-max types take the extremes of a batch, others need its values",
          "[quant][observer]") {
  for (const ObserverKind kind : {ObserverKind::kMinMax, ObserverKind::kMovingAverage}) {
    auto by_value = make_observer({.kind = kind}, 1);
    auto by_range = make_observer({.kind = kind}, 1);
    REQUIRE_FALSE(by_range->needs_values());
    for (const float shift : {0.0f, 1.0f}) {
      by_value->observe(Tensor::from({2, 2}, std::vector<float>{1 + shift, -1, 3, 2 + shift}));
      const std::array extremes{Range{1 + shift, 3}, Range{-1, 2 + shift}};
      by_range->observe_range(extremes, 2);
    }
    CHECK(by_range->ranges() == by_value->ranges());
    CHECK(by_range->samples() == by_value->samples());
    const std::array bad{Range{0, 1}, Range{0, kInfinity}};
    QUANTRAIN_CHECK_ERROR(by_range->observe_range(bad, 2), DataError, "channel 1");
    const std::array three{Range{}, Range{}, Range{}};
    QUANTRAIN_CHECK_ERROR(by_range->observe_range(three, 2), ShapeError, "3 channels");
    QUANTRAIN_CHECK_ERROR(by_range->observe_range({}, 2), ShapeError, "0 ranges");
    QUANTRAIN_CHECK_ERROR(
        make_observer({.kind = kind})->observe_range(three, 2), ShapeError, "3 ranges");
  }
  for (const ObserverKind kind : {ObserverKind::kPercentile, ObserverKind::kMeanStd}) {
    const std::array one{Range{0, 1}};
    QUANTRAIN_CHECK_ERROR(
        make_observer({.kind = kind})->observe_range(one, 1), QuantError, "needs a batch's values");
  }
}

TEST_CASE("a restored observer goes on as the saved one", "[quant][observer]") {
  for (const ObserverKind kind : kKinds) {
    auto observer = make_observer({.kind = kind}, 0, "conv1");
    auto restored = make_observer({.kind = kind}, 0, "conv1");
    restored->set_state(observer->state());
    CHECK(restored->count() == 0);
    CHECK(restored->channels() == 0);
    observer->observe(normal({3, 5}));
    restored->set_state(observer->state());
    auto copy = observer->clone();
    const Tensor more = Tensor::full({3, 2}, 100.0f);
    observer->observe(more);
    restored->observe(more);
    copy->observe(more);
    CHECK(restored->ranges() == observer->ranges());
    CHECK(restored->count() == observer->count());
    CHECK(restored->samples() == observer->samples());
    CHECK(copy->ranges() == observer->ranges());
    CHECK(copy->name() == "conv1");
  }
}

TEST_CASE("a state that makes no sense is refused", "[quant][observer]") {
  MinMaxObserver observer(-1, "fc");
  const Tensor counts = vector({1, 1});
  const auto ranges = [](std::initializer_list<float> values) {
    return Tensor::from({static_cast<int64_t>(values.size()) / 2, 2}, std::vector<float>(values));
  };
  QUANTRAIN_CHECK_ERROR(observer.set_state({vector({0, 1}), counts}), ShapeError, "[2]");
  QUANTRAIN_CHECK_ERROR(observer.set_state({ranges({0, 1, 0, 1}), counts}), ShapeError, "[2, 2]");
  QUANTRAIN_CHECK_ERROR(observer.set_state({ranges({0, 1}), vector({1})}), ShapeError, "counts");
  QUANTRAIN_CHECK_ERROR(observer.set_state({ranges({1, 0}), counts}), DataError, "range [1, 0]");
  QUANTRAIN_CHECK_ERROR(observer.set_state({ranges({0, kNan}), counts}), DataError, "NaN");
  QUANTRAIN_CHECK_ERROR(
      observer.set_state({ranges({0, 1}), vector({-1, 1})}), DataError, "count -1");
  QUANTRAIN_CHECK_ERROR(
      observer.set_state({ranges({0, 1}), vector({1, kNan})}), DataError, "count");
  QUANTRAIN_CHECK_ERROR(observer.range(), QuantError, "has seen no data");
}

TEST_CASE("ranges do not depend on the number of threads", "[quant][observer]") {
  const Tensor x = normal({40, 6, 200});
  for (const ObserverKind kind : kKinds) {
    for (const int axis : {-1, 0, 1, 2}) {
      auto one = make_observer({.kind = kind}, axis);
      auto three = make_observer({.kind = kind}, axis);
      set_threads(1);
      one->observe(x);
      for (const int threads : test::thread_counts({1, 3})) set_threads(threads);
      three->observe(x);
      set_threads(0);
      CHECK(one->ranges() == three->ranges());
    }
  }
}

TEST_CASE("a spec names its kind and is validated", "[quant][observer]") {
  for (const ObserverKind kind : kKinds) {
    CHECK(observer_kind(to_string(kind)) == kind);
    CHECK(make_observer({.kind = kind})->kind() == to_string(kind));
  }
  QUANTRAIN_CHECK_ERROR(
      observer_kind("mse"), QuantError, "known: min_max, moving_average, percentile");
  const auto average = [](float c) {
    return make_observer({.kind = ObserverKind::kMovingAverage, .averaging_constant = c});
  };
  QUANTRAIN_CHECK_ERROR(average(0.0f), QuantError, "(0, 1]");
  QUANTRAIN_CHECK_ERROR(average(1.5f), QuantError, "got 1.5");
  QUANTRAIN_CHECK_ERROR(average(kNan), QuantError, "nan");
  const auto percentile = [](double low, double high) {
    return make_observer(
        {.kind = ObserverKind::kPercentile, .low_percentile = low, .high_percentile = high});
  };
  QUANTRAIN_CHECK_ERROR(percentile(-1, 99), QuantError, "-1 and 99");
  QUANTRAIN_CHECK_ERROR(percentile(50, 50), QuantError, "in order");
  QUANTRAIN_CHECK_ERROR(percentile(1, 101), QuantError, "101");
  for (const float k : {0.0f, -1.0f, kInfinity}) {
    QUANTRAIN_CHECK_ERROR(
        make_observer({.kind = ObserverKind::kMeanStd, .k = k}), QuantError, "k must be positive");
  }
}

TEST_CASE("parameters come from each channel's range", "[quant][observer]") {
  MinMaxObserver observer(0, "fc");
  QUANTRAIN_CHECK_ERROR(observer.params({}, QScheme::kAffine), QuantError, "[fc]");
  observer.observe(Tensor::from({2, 2}, std::vector<float>{0, 255, -256, 254}));
  const QParams params = observer.params({8, false, false}, QScheme::kAffine);
  CHECK(params.axis == 0);
  CHECK(params.scale == std::vector<float>{1.0f, 2.0f});
  CHECK(params.zero_point == std::vector<int32_t>{0, 128});
}

}  // namespace quantrain::quant
