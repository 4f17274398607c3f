#include "quant/observers/entropy.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/quant/observers/loaded_histogram.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Json;

constexpr QType kU4{4, false, false};

/// 20,000 standard normal values and two outliers.
Tensor with_outliers(bool absolute) {
  Tensor x = Tensor::empty({20002});
  Random random(4);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const float value = random.normal();
    x.mutable_data()[i] = absolute ? std::abs(value) : value;
  }
  x.mutable_data()[7] = 40.0f;
  x.mutable_data()[8] = absolute ? 41.0f : -41.0f;
  return x;
}

}  // namespace

TEST_CASE("the threshold of least divergence is that of the published procedure",
          "[quant][entropy][vectors]") {
  int clipped = 0;
  for (const Json& json : test::load_vectors("histograms")) {
    CAPTURE(json.at("name").get<std::string>());
    const auto observer = test::loaded_histogram(EntropyOptions{}, json);
    for (const Json& choice : json.at("entropy")) {
      const bool is_signed = choice.at("signed").get<bool>();
      const QType type{choice.at("bits").get<int>(), is_signed, false};
      CAPTURE(type);
      const Range expected{choice.at("min").get<float>(), choice.at("max").get<float>()};
      const std::vector<Range> ranges =
          observer->ranges(type, is_signed ? QScheme::kSymmetric : QScheme::kAffine);
      CHECK(ranges == std::vector<Range>{expected});
      if (expected.max < json.at("max").get<float>()) ++clipped;
    }
  }
  CHECK(clipped > 20);  // otherwise the vectors test little
}

TEST_CASE("outliers are cut off on the side where they are", "[quant][entropy]") {
  EntropyObserver both;
  both.observe(with_outliers(false));
  const Range two_sided = both.ranges(kU4, QScheme::kAffine)[0];
  CHECK(two_sided.max < 10.0f);
  CHECK(two_sided.max > 1.0f);
  CHECK(two_sided.min == -two_sided.max);
  EntropyObserver positive;
  positive.observe(with_outliers(true));
  const Range one_sided = positive.ranges(kU4, QScheme::kAffine)[0];
  CHECK(one_sided.max < 10.0f);
  CHECK(one_sided.max > 1.0f);
  CHECK(one_sided.min >= 0.0f);
}

TEST_CASE("values that are exactly 0 move no threshold", "[quant][entropy]") {
  EntropyObserver alone;
  EntropyObserver with_zeros;
  for (EntropyObserver* observer : {&alone, &with_zeros}) observer->observe(with_outliers(true));
  with_zeros.observe(Tensor::zeros({100000}));
  CHECK(alone.ranges(kU4, QScheme::kAffine)[0].max ==
        with_zeros.ranges(kU4, QScheme::kAffine)[0].max);
}

TEST_CASE("no value is cut off if values are in fewer bins than there are levels",
          "[quant][entropy]") {
  EntropyObserver observer({.bins = 64});
  observer.observe(Tensor::from({3}, std::vector<float>{1.0f, -2.0f, 50.0f}));
  CHECK(observer.ranges({8, false, false}, QScheme::kAffine)[0] == Range{-2.0f, 50.0f});
  EntropyObserver equal;
  equal.observe(Tensor::full({9}, 0.3f));
  CHECK(equal.ranges(kU4, QScheme::kAffine)[0] == Range{0.3f, 0.3f});
  EntropyObserver zeros;
  zeros.observe(Tensor::zeros({9}));
  CHECK(zeros.ranges(kU4, QScheme::kAffine)[0] == Range{0.0f, 0.0f});
  QUANTRAIN_CHECK_ERROR(EntropyObserver({.bins = 1}), QuantError, "bins must be 64 to 65536");
}

}  // namespace quantrain::quant
