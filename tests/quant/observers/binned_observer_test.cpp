#include "quant/observers/binned_observer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/quant/observers/observers.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::state_of;

/// An observer that shows its bins.
class Counter : public BinnedObserver {
 public:
  explicit Counter(int bins = 64, ObserverShape shape = {})
      : BinnedObserver(bins, std::move(shape)) {}
  std::string_view kind() const override { return "counter"; }

  Bins bins_of() const {
    ranges({}, {});
    return seen_;
  }

 protected:
  Range choose_range(const Bins& bins, const QType&, QScheme) const override {
    if (channels() == 1) seen_ = bins;
    return bins.range;
  }

 private:
  mutable Bins seen_;
};

float* state(const Observer& observer, std::string_view name) {
  return quantrain::test::writable(quantrain::test::entry_of(observer.state(), name).tensor);
}

std::vector<int64_t> histogram_of(const Observer& observer) {
  const NamedState entry = quantrain::test::entry_of(observer.state(), "histogram");
  return {entry.integers.values().begin(), entry.integers.values().end()};
}

Tensor tensor(const std::vector<float>& values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, values);
}

/// Counts the values in bins, in the obvious way. `width` becomes the smallest power of two with
/// which `bins` bins are enough.
std::map<int64_t, int64_t> obvious(const std::vector<float>& values, int64_t bins, double& width) {
  const double min = std::min(*std::min_element(values.begin(), values.end()), 0.0f);
  const double max = std::max(*std::max_element(values.begin(), values.end()), 0.0f);
  const auto needed = [&] {
    return (max > 0.0 ? std::floor(max / width) + 1.0 : 0.0) - std::floor(min / width);
  };
  width = 0x1p-126;
  while (needed() > static_cast<double>(bins)) width *= 2.0;
  std::map<int64_t, int64_t> counts;
  for (const float x : values) {
    if (x != 0.0f) ++counts[static_cast<int64_t>(std::floor(static_cast<double>(x) / width))];
  }
  return counts;
}

void check_counts(const Counter& counter, const std::vector<float>& values) {
  double width = 0.0;
  const std::map<int64_t, int64_t> expected = obvious(values, counter.bins(), width);
  const Bins bins = counter.bins_of();
  CHECK(static_cast<double>(bins.width) == width);
  CHECK(bins.range.min == *std::min_element(values.begin(), values.end()));
  CHECK(bins.range.max == *std::max_element(values.begin(), values.end()));
  std::map<int64_t, int64_t> counts;
  for (size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] != 0) counts[bins.first + static_cast<int64_t>(i)] = bins.counts[i];
  }
  CHECK(counts == expected);
}

}  // namespace

TEST_CASE("bins count all values but zeros, and their width is the smallest power of two that fits",
          "[quant][binned]") {
  Counter counter;
  counter.observe(tensor({0.0f, 0.25f, 1.0f, 1.01f, 15.99f, 15.0f, 0.0f}));
  const Bins bins = counter.bins_of();
  CHECK(bins.width == 0.25f);
  CHECK(bins.first == 0);
  REQUIRE(bins.counts.size() == 64);
  CHECK(bins.counts[0] == 0);  // exact zeros are not counted
  CHECK(bins.counts[1] == 1);
  CHECK(bins.counts[4] == 2);
  CHECK(bins.counts[60] == 1);
  CHECK(bins.counts[63] == 1);
  CHECK(bins.centre(4) == 1.125f);
  CHECK(bins.centre(63) == 15.875f);
  CHECK(bins.range == Range{0.0f, 15.99f});

  Counter equal;
  equal.observe(tensor({5.0f, 5.0f}));
  CHECK(equal.bins_of().centre(equal.bins_of().counts.size() - 1) == 5.0f);
}

TEST_CASE("counts stay exact when the range grows, in any order of the batches",
          "[quant][binned]") {
  const std::vector<std::vector<float>> batches{
      {0.5f, 0.25f, -0.125f},
      {3.0f, 2.9f, -0.001f, 0.0f},
      {-7.0f, 1e-30f, -1e-30f},
      {100.0f, 99.9f, 64.0f, 32.0f},
      {-1000.5f, 1e-45f, -1e-45f, 0.1f},
  };
  Counter forward;
  Counter backward;
  std::vector<float> seen;
  for (size_t i = 0; i < batches.size(); ++i) {
    forward.observe(tensor(batches[i]));
    backward.observe(tensor(batches[batches.size() - 1 - i]));
    seen.insert(seen.end(), batches[i].begin(), batches[i].end());
    check_counts(forward, seen);
  }
  const auto in_order = state_of(forward);
  const auto reversed = state_of(backward);
  for (size_t i = 0; i < in_order.size(); ++i) CHECK(in_order[i] == reversed[i]);

  Random random(7);
  Counter many(128);
  seen.clear();
  for (int batch = 0; batch < 40; ++batch) {
    std::vector<float> values;
    const float size = std::ldexp(random.uniform(0.5f, 2.0f), batch / 4 - 5);
    for (int i = 0; i < 50; ++i) values.push_back(size * random.normal());
    many.observe(tensor(values));
    seen.insert(seen.end(), values.begin(), values.end());
  }
  check_counts(many, seen);
}

TEST_CASE("values of any size have bins", "[quant][binned]") {
  const float most = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& values : std::vector<std::vector<float>>{{most, -most},
                                                                          {most},
                                                                          {-most},
                                                                          {least},
                                                                          {-least, 0.0f},
                                                                          {0x1p-126f, -1.5f},
                                                                          {-4.0f, 0.0f, -1e-9f},
                                                                          {16.0f, 8.0f},
                                                                          {least, most}}) {
    CAPTURE(values[0]);
    Counter counter;
    counter.observe(tensor(values));
    check_counts(counter, values);
  }
  Counter zeros;
  zeros.observe(Tensor::zeros({4}));
  CHECK(zeros.ranges({}, {}) == std::vector<Range>{Range{0, 0}});
  zeros.observe(tensor({1.0f, 0.5f}));
  check_counts(zeros, {0.0f, 1.0f, 0.5f});
}

TEST_CASE("values that are counted in blocks have the counts of a simple loop", "[quant][binned]") {
  const Tensor x = quantrain::test::random_tensor({300, 4, 700}, 5, -3.0f, 5.0f);
  const std::vector<float> values = quantrain::test::values(x);
  Counter whole(2048);
  whole.observe(x);
  check_counts(whole, values);
  Counter by_channel(2048, {1, 4});
  by_channel.observe(x);
  for (int64_t c = 0; c < 4; ++c) {
    std::vector<float> channel;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i / 700 % 4 == static_cast<size_t>(c)) channel.push_back(values[i]);
    }
    Counter alone(2048);
    alone.observe(tensor(channel));
    const std::vector<int64_t> expected = histogram_of(alone);
    CHECK(
        std::equal(expected.begin(), expected.end(), histogram_of(by_channel).begin() + c * 2048));
  }
}

TEST_CASE("an invalid histogram that was loaded is refused before it is used", "[quant][binned]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto check_damaged = [](const auto& damage, const std::string& message) {
    Counter counter(64, {0, 2, "fc"});
    counter.observe(Tensor::from({2, 2}, std::vector<float>{1, 2, -3, 4}));
    damage(counter);
    QUANTRAIN_CHECK_ERROR(counter.ranges({}, {}), DataError, "[fc] counter observer: state");
    QUANTRAIN_CHECK_ERROR(counter.ranges({}, {}), DataError, message.c_str());
    QUANTRAIN_CHECK_ERROR(counter.observe(Tensor::zeros({2, 1})), DataError, message.c_str());
    CHECK(counter.count() == 1);
  };
  const auto check = [&](const char* name, int64_t i, float value, const std::string& message) {
    CAPTURE(name, i, value);
    check_damaged([&](const Counter& counter) { state(counter, name)[i] = value; }, message);
  };
  const auto check_count = [&](size_t bin, int64_t count, const std::string& message) {
    check_damaged(
        [&](const Counter& counter) {
          std::vector<int64_t> counts = histogram_of(counter);
          counts[bin] = count;
          quantrain::test::entry_of(counter.state(), "histogram").integers.set(counts);
        },
        message);
  };
  for (const float bad : {nan, infinity, -infinity}) {
    check("range", 2, bad, "\"range\", channel 1");
    check("range", 3, bad, "\"range\", channel 1");
    check("grid", 2, bad, "\"grid\", channel 1");
    check("grid", 3, bad, "\"grid\", channel 1");
  }
  check("range", 2, 5.0f, "not in order");
  check("range", 3, 100.0f, "[-3, 100] is not in the bins");
  check("range", 2, -3.2f, "is not in the bins, which are 0.125 wide and begin at -3");
  check("range", 3, 3e38f, "is not in the bins");
  for (const float width : {0.0f, -0.125f, 0.1f, 1e-45f})
    check("grid", 3, width, "is no power of two");
  check("grid", 3, 0x1p-120f, "is not in the bins");
  for (const float first : {0.5f, 1.0f, -65.0f}) check("grid", 2, first, "no whole number");
  check_count(1, kMostCount, "\"histogram\", channel 0: the counts up to bin 16 exceed 2^53");
  check_count(64 + 63, 1, "channel 1: bin 63 counts values outside of [-3, 4]");
}

TEST_CASE("there are 64 to 65536 bins", "[quant][binned]") {
  QUANTRAIN_CHECK_ERROR(Counter(63), QuantError, "bins must be 64 to 65536, got 63");
  QUANTRAIN_CHECK_ERROR(Counter(65537), QuantError, "got 65537");
  CHECK(Counter(65536).bins() == 65536);
}

}  // namespace quantrain::quant
