#include "framework/data/features.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

using integer::InputFeatures;

TEST_CASE("fit_mean_std finds the mean and the standard deviation of each feature",
          "[data][features]") {
  // The columns are (1, 3, 5), (200, 0, 100) and (7, 7, 7).
  const std::vector<float> rows{1, 200, 7, 3, 0, 7, 5, 100, 7};
  const InputFeatures fitted = fit_mean_std(rows, 3, {.constant = ConstantFeature::kKeep});
  CHECK(fitted.offset == std::vector<float>{3.0f, 100.0f, 7.0f});
  CHECK(fitted.scale == std::vector<float>{static_cast<float>(std::sqrt(8.0 / 3.0)),
                                           static_cast<float>(std::sqrt(20000.0 / 3.0)),
                                           1.0f});
  const Range range = feature_range(rows, fitted);
  CHECK(range.min == quantrain::test::Approx(-std::sqrt(1.5)));
  CHECK(range.max == quantrain::test::Approx(std::sqrt(1.5)));
}

TEST_CASE("fit_min_max maps the smallest and largest value of each feature to 0 and 1",
          "[data][features]") {
  const std::vector<float> rows{1, 200, 7, 3, 0, 7, 5, 100, 7};
  const InputFeatures fitted = fit_min_max(rows, 3, {.constant = ConstantFeature::kKeep});
  CHECK(fitted == InputFeatures{{1.0f, 0.0f, 7.0f}, {4.0f, 200.0f, 1.0f}});
  CHECK(feature_range(rows, fitted) == Range{0.0f, 1.0f});
  // The ends of the range are exact, despite rounding.
  const std::vector<float> odd{0.1f, 1e-7f, 0.7f, 3e5f, -0.3f, 17.0f};
  CHECK(feature_range(odd, fit_min_max(odd, 2)) == Range{0.0f, 1.0f});
}

TEST_CASE("a constant feature is refused by name, unless it is to be kept", "[data][features]") {
  const std::vector<float> rows{1, 200, 7, 3, 0, 7, 5, 100, 7};
  const std::vector<std::string> names{"time", "pressure", "mode"};
  const char* const text =
      "feature 2 (mode) is 7 in all 3 rows: leave the feature out, or keep it with scale 1 "
      "(ConstantFeature::kKeep)";
  QUANTRAIN_CHECK_ERROR(fit_mean_std(rows, 3, {.names = names}), DataError, text);
  QUANTRAIN_CHECK_ERROR(fit_min_max(rows, 3, {.names = names}), DataError, text);
  QUANTRAIN_CHECK_ERROR(fit_min_max(rows, 3), DataError, "feature 2 is 7 in all 3 rows");
  QUANTRAIN_CHECK_ERROR(fit_min_max(rows, 9, {.names = names}), DataError, "3 names for 9");
  // The rounding of the column's sum does not count as variance.
  const std::vector<float> tenths(1000, 0.1f);
  const InputFeatures kept = fit_mean_std(tenths, 1, {.constant = ConstantFeature::kKeep});
  CHECK(kept == InputFeatures{{0.1f}, {1.0f}});
}

TEST_CASE("rows that cannot be fitted are rejected", "[data][features]") {
  const std::vector<float> rows(6, 1.0f);
  const auto both = [&](const std::vector<float>& values, int64_t features, const char* text) {
    QUANTRAIN_CHECK_ERROR(fit_mean_std(values, features), DataError, text);
    QUANTRAIN_CHECK_ERROR(fit_min_max(values, features), DataError, text);
  };
  both(rows, 4, "6 values do not form rows of 4 features: expected a positive multiple");
  both({}, 4, "0 values do not form rows");
  both(rows, 0, "rows have 0 features");
  both({1.0f, 2.0f, 3.0f, std::nanf("")}, 2, "value nan at 3 (row 1, feature 1) is not finite");
  both({1.0f, HUGE_VALF}, 1, "value inf at 1");
  const float most = std::numeric_limits<float>::max();
  QUANTRAIN_CHECK_ERROR(
      fit_min_max(std::vector{-most, most}, 1), DataError, "feature 0 reaches from -3.40");
  QUANTRAIN_CHECK_ERROR(feature_range(rows, {{0.0f, 0.0f}, {1.0f, -1.0f}}), QuantError, "scale -1");
}

}  // namespace quantrain
