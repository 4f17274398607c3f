#include "quant/observers/observer.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"
#include "quant/observers/spec.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/quant/observers/observers.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

// Properties of every kind of observer.
namespace quantrain::quant {
namespace {

using quantrain::test::kInfinity;
using quantrain::test::kNan;
using quantrain::test::kU8;
using quantrain::test::normal_tensor;
using quantrain::test::state_of;
using quantrain::test::vector;

std::vector<Range> ranges_of(const Observer& observer) {
  return observer.ranges(kU8, QScheme::kAffine);
}

/// Copies the state, as a checkpoint does.
void copy_state(const Observer& from, const Observer& to) {
  REQUIRE(from.state().size() == to.state().size());
  for (size_t i = 0; i < from.state().size(); ++i) {
    REQUIRE(from.state()[i].name == to.state()[i].name);
    NamedState(to.state()[i]).copy_values(from.state()[i]);
  }
}

/// A custom observer. Its range is [-m, m], where m is the mean over batches of each batch's mean
/// |x|.
class MeanAbsObserver : public Observer {
 public:
  explicit MeanAbsObserver(ObserverShape shape = {}) : Observer(std::move(shape)) {
    sums_ = add_state("sums", {channels()});
  }
  std::string_view kind() const override { return "mean_abs"; }
  size_t surplus = 0;

 protected:
  void accumulate(const Batch& batch, std::span<const Range>) override {
    const int64_t run = batch.n / batch.channels;
    for (int64_t i = 0; i < batch.n; ++i) {
      sums_.mutable_data()[i / batch.inner % batch.channels] +=
          std::abs(batch.x[i]) / static_cast<float>(run);
    }
  }
  std::vector<Range> choose_ranges(const QType&, QScheme) const override {
    std::vector<Range> ranges(surplus);
    for (int64_t c = 0; c < channels(); ++c) {
      const float mean = sums_.data()[c] / static_cast<float>(count());
      ranges.push_back({-mean, mean});
    }
    return ranges;
  }
  void check_state() const override {
    if (!(sums_.data()[0] >= 0.0f)) throw DataError(where(), "negative");
  }

 private:
  Tensor sums_;
};

}  // namespace

TEST_CASE("an observer along an axis works like a separate observer for each channel",
          "[quant][observer][serial]") {
  const Tensor x = normal_tensor({5, 3, 4}, 3);
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    for (int axis = 0; axis < 3; ++axis) {
      CAPTURE(axis);
      const auto observer = make_observer(spec, {axis, x.dim(axis), "layer"});
      observer->observe(x);
      const std::vector<Range> all = ranges_of(*observer);
      REQUIRE(all.size() == static_cast<size_t>(x.dim(axis)));
      const std::array<int64_t, 3> stride{12, 4, 1};
      for (int64_t c = 0; c < x.dim(axis); ++c) {
        std::vector<float> channel;
        for (int64_t i = 0; i < x.elements(); ++i) {
          if (i / stride[static_cast<size_t>(axis)] % x.dim(axis) == c)
            channel.push_back(x.data()[i]);
        }
        const auto alone = make_observer(spec);
        alone->observe(Tensor::from({static_cast<int64_t>(channel.size())}, channel));
        const Range expected = ranges_of(*alone)[0];
        const Range range = all[static_cast<size_t>(c)];
        // The doubles are summed in another order, so the last bit of the float may differ.
        CHECK(range.min == quantrain::test::Approx(expected.min).epsilon(1e-6));
        CHECK(range.max == quantrain::test::Approx(expected.max).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("an observer without an axis has 1 channel, and one along an axis at least 1",
          "[quant][observer]") {
  for (const auto& [axis, channels] : {std::pair{-1, 3}, std::pair{-1, 0}, std::pair{1, 0}}) {
    QUANTRAIN_CHECK_ERROR(make_observer(MinMaxOptions{}, {axis, channels, "layer"}),
                          QuantError,
                          "[layer] axis " + std::to_string(axis) + " with " +
                              std::to_string(channels) +
                              " channels: expected 1 channel with axis -1, which means no axis");
  }
}

TEST_CASE("an observer counts batches and samples until it is reset", "[quant][observer]") {
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    const auto observer = make_observer(spec, {.name = "conv1"});
    QUANTRAIN_CHECK_ERROR(ranges_of(*observer), QuantError, "has seen no data");
    observer->observe(normal_tensor({8, 2}, 3));
    observer->observe(normal_tensor({4, 2}, 3));
    observer->observe(Tensor::full({}, 1.0f));
    CHECK(observer->count() == 3);
    CHECK(observer->samples() == 13);
    observer->reset();
    CHECK(observer->count() == 0);
    CHECK(observer->samples() == 0);
    CHECK(state_of(*observer) == state_of(*make_observer(spec)));
    QUANTRAIN_CHECK_ERROR(ranges_of(*observer), QuantError, "[conv1]");
  }
}

TEST_CASE("counts are exact even above 2^24, where float32 is not", "[quant][observer]") {
  MinMaxObserver observer;
  const std::array range{Range{0, 1}};
  observer.observe_range(range, int64_t{1} << 25);
  for (int i = 0; i < 3; ++i) observer.observe_range(range, 1);
  CHECK(observer.samples() == (int64_t{1} << 25) + 3);
  const int64_t most = kMostCount - observer.samples();
  QUANTRAIN_CHECK_ERROR(observer.observe_range(range, most + 1), DataError, "cannot count");
  observer.observe_range(range, most);
  CHECK(observer.samples() == kMostCount);
}

TEST_CASE("an observer refuses NaN, infinity and empty batches, and stays as it was",
          "[quant][observer]") {
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    const auto observer = make_observer(spec, {.name = "block1.conv"});
    observer->observe(vector({1, 2}));
    const auto before = state_of(*observer);
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      QUANTRAIN_CHECK_ERROR(observer->observe(vector({1, bad, 2})), DataError, "NaN or infinity");
      QUANTRAIN_CHECK_ERROR(observer->observe(vector({bad})), DataError, "[block1.conv]");
      QUANTRAIN_CHECK_ERROR(observer->observe(vector({bad})), DataError, kind(spec).data());
    }
    QUANTRAIN_CHECK_ERROR(
        observer->observe(Tensor::empty({0, 3})), DataError, "empty batch [0, 3]");
    CHECK(state_of(*observer) == before);

    const auto channels = make_observer(spec, {1, 2, "fc"});
    QUANTRAIN_CHECK_ERROR(channels->observe(vector({1, 2})), ShapeError, "no axis 1 in [2]");
    QUANTRAIN_CHECK_ERROR(channels->observe(normal_tensor({2, 3}, 3)),
                          ShapeError,
                          "3 channels along axis 1, expected 2");
    QUANTRAIN_CHECK_ERROR(channels->observe(Tensor::from({1, 2}, std::vector<float>{0, kNan})),
                          DataError,
                          "channel 1");
    CHECK(channels->count() == 0);
    QUANTRAIN_CHECK_ERROR(channels->ranges({0, false, false}, {}), QuantError, "1 to 16");
    for (const auto& [axis, extent] : {std::pair(-1, 2), std::pair(0, 0), std::pair(1, -1)})
      QUANTRAIN_CHECK_ERROR(make_observer(spec, {axis, extent, "fc"}), QuantError, "[fc]");
  }
}

TEST_CASE("an observer continues from what is written to its state", "[quant][observer]") {
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    const auto observer = make_observer(spec, {0, 3, "conv1"});
    const auto restored = make_observer(spec, {0, 3, "conv1"});
    observer->observe(normal_tensor({3, 50}, 3));
    copy_state(*observer, *restored);
    CHECK(ranges_of(*restored) == ranges_of(*observer));
    const Tensor more = Tensor::full({3, 2}, 100.0f);
    observer->observe(more);
    restored->observe(more);
    CHECK(state_of(*restored) == state_of(*observer));
    CHECK(ranges_of(*restored) == ranges_of(*observer));
    CHECK(restored->count() == 2);

    // If the state counts no batch, its other values are ignored.
    const auto fresh = make_observer(spec, {0, 3, "conv1"});
    NamedState(restored->state()[0]).integers.fill(0);
    QUANTRAIN_CHECK_ERROR(ranges_of(*restored), QuantError, "has seen no data");
    restored->observe(more);
    fresh->observe(more);
    CHECK(state_of(*restored) == state_of(*fresh));
  }
}

TEST_CASE("an observer that has counted as far as it can refuses another batch",
          "[quant][observer]") {
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    const auto observer = make_observer(spec, {.name = "fc"});
    observer->observe(vector({1, 2}));
    REQUIRE(observer->state()[0].name == "counts");
    NamedState(observer->state()[0]).integers.set(std::array{kMostCount, int64_t{2}});
    const auto before = state_of(*observer);
    QUANTRAIN_CHECK_ERROR(observer->observe(vector({1})), DataError, "[fc]");
    CHECK(state_of(*observer) == before);
  }
}

TEST_CASE("params_of gives the parameters of one tensor, and leaves the state as it was",
          "[quant][observer]") {
  const Tensor x = normal_tensor({4, 6}, 5);
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    const auto observer = make_observer(spec);
    const auto alone = make_observer(spec);
    observer->observe(Tensor::full({7}, 30.0f));
    alone->observe(x);
    const auto before = state_of(*observer);
    CHECK(observer->params_of(x, kU8, QScheme::kAffine) == alone->params(kU8, QScheme::kAffine));
    CHECK(state_of(*observer) == before);
    QUANTRAIN_CHECK_ERROR(
        observer->params_of(vector({kNan}), kU8, QScheme::kAffine), DataError, "NaN");
    CHECK(state_of(*observer) == before);
  }
}

TEST_CASE("state does not depend on the number of threads", "[quant][observer]") {
  const Tensor x = normal_tensor({6, 700, 40}, 3);
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    for (const int axis : {-1, 0, 2}) {
      const int64_t channels = axis < 0 ? 1 : x.dim(axis);
      const auto one = make_observer(spec, {axis, channels});
      const auto three = make_observer(spec, {axis, channels});
      set_threads(1);
      one->observe(x);
      for (const int threads : quantrain::test::thread_counts({1, 3})) set_threads(threads);
      three->observe(x);
      const bool equal = ranges_of(*one) == ranges_of(*three);
      set_threads(0);
      CHECK(equal);
      CHECK(state_of(*one) == state_of(*three));
    }
  }
}

TEST_CASE("a spec names its kind", "[quant][observer]") {
  CHECK(kind(ObserverSpec{}) == "min_max");
  for (const ObserverSpec& spec : observer_specs()) {
    CHECK(observer_spec(kind(spec)) == spec);
    CHECK(make_observer(spec)->kind() == kind(spec));
  }
  QUANTRAIN_CHECK_ERROR(
      observer_spec("median"),
      QuantError,
      "no kind \"median\"; known: min_max, recent_min_max, moving_average, percentile");
}

TEST_CASE("parameters come from each channel's range", "[quant][observer]") {
  MinMaxObserver observer({}, {0, 2, "fc"});
  QUANTRAIN_CHECK_ERROR(observer.params({}, QScheme::kAffine), QuantError, "[fc]");
  observer.observe(Tensor::from({2, 2}, std::vector<float>{0, 255, -256, 254}));
  CHECK(observer.range(1) == Range{-256, 254});
  QUANTRAIN_CHECK_ERROR(observer.range(2), QuantError, "no channel 2, it has 2");
  const QParams params = observer.params(kU8, QScheme::kAffine);
  CHECK(params.axis == 0);
  CHECK(params.scale == std::vector<float>{1.0f, 2.0f});
  CHECK(params.zero_point == std::vector<int32_t>{0, 128});
}

TEST_CASE("a user-defined observer defines its state and its ranges", "[quant][observer]") {
  MeanAbsObserver observer({0, 2, "fc"});
  observer.observe(Tensor::from({2, 2}, std::vector<float>{1, -3, 5, 5}));
  observer.observe(Tensor::from({2, 1}, std::vector<float>{4, 1}));
  CHECK(ranges_of(observer) == std::vector<Range>{{-3, 3}, {-3, 3}});
  CHECK(observer.params(kU8, QScheme::kAffine).scale[0] == 6.0f / 255.0f);
  CHECK(observer.state()[1].name == "sums");
  quantrain::test::writable(observer.state()[1].tensor)[0] = -1.0f;
  QUANTRAIN_CHECK_ERROR(ranges_of(observer), DataError, "negative");
  observer.reset();
  observer.observe(Tensor::full({2, 2}, 2.0f));
  CHECK(ranges_of(observer) == std::vector<Range>{{-2, 2}, {-2, 2}});
  observer.surplus = 1;
  QUANTRAIN_CHECK_ERROR(ranges_of(observer), QuantError, "chose 3 ranges for 2 channels");

  class Twice : public MeanAbsObserver {
   public:
    Twice() { add_state("sums", {1}); }
  };
  QUANTRAIN_CHECK_ERROR(Twice(), QuantError, "two states are named \"sums\"");
}

}  // namespace quantrain::quant
