#include "framework/data/coverage.hpp"

#include <cmath>
#include <sstream>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/data/features.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

using quantrain::test::ContainsSubstring;

/// 1000 rows of two features. Feature 0 has the values 0, 0.001 to 0.999, each once, but for two
/// spikes at -100 and 100; feature 1 is 0 or 1.
std::vector<float> spiky_rows() {
  std::vector<float> rows;
  for (int i = 0; i < 1000; ++i) {
    rows.push_back(static_cast<float>(i) / 1000.0f);
    rows.push_back(static_cast<float>(i % 2));
  }
  rows[2 * 300] = -100.0f;
  rows[2 * 700] = 100.0f;
  return rows;
}

}  // namespace

TEST_CASE("coverage counts the codes of the middle values, and what saturates",
          "[data][features]") {
  const std::vector<float> rows = spiky_rows();
  const integer::InputFeatures none{{0.0f, 0.0f}, {1.0f, 1.0f}};
  // Steps of 202 / 255 = 0.792: from 0 to 0.396 the code of 0, then the next.
  const InputCoverage wide = coverage(rows, {-101.0f, 101.0f}, none, {"flow", "valve"});
  REQUIRE(wide.features.size() == 2);
  CHECK(wide.features[0].name == "flow");
  CHECK(wide.features[0].values == 991);  // ranks 5 to 995: 0.003 to 0.995
  CHECK(wide.features[0].codes == 2);
  CHECK(wide.features[0].saturated == 0.0);
  CHECK(wide.features[1].values == 2);
  CHECK(wide.features[1].codes == 2);
  const std::vector<std::string> warnings = wide.warnings();
  REQUIRE(warnings.size() == 1);  // two values with a code each are no loss
  CHECK_THAT(warnings[0],
             ContainsSubstring("feature flow: 99 % of its values get only 2 of the 256 codes, "
                               "although 991 of them differ"));
  CHECK_THAT(warnings[0], ContainsSubstring("fit_percentiles()"));
  std::ostringstream text;
  text << wide;
  CHECK_THAT(text.str(), ContainsSubstring("\nflow        991      2     0.00 %\n"));
  CHECK_THAT(text.str(), ContainsSubstring("\nwarning: feature flow: 99 %"));

  // Steps of 1 / 255: 0.003 has code 1, 0.995 has code 254.
  const InputCoverage unit = coverage(rows, {0.0f, 1.0f}, none);
  CHECK(unit.features[0].name == "0");
  CHECK(unit.features[0].codes == 254);
  CHECK(unit.features[0].saturated == 2.0 / 1000.0);
  CHECK(unit.warnings().empty());

  const InputCoverage narrow = coverage(rows, {0.0f, 0.5f}, none);
  CHECK(narrow.features[0].saturated == test::Approx(0.5).margin(0.005));
  REQUIRE(narrow.warnings().size() == 2);
  CHECK_THAT(narrow.warnings()[1],
             ContainsSubstring("feature 1: 50.0 % of its values saturate. Declare a wider range"));

  // Without features, all values count together.
  const InputCoverage pixels = coverage(std::vector<float>{0.0f, 0.5f, 1.0f}, {0.0f, 1.0f});
  REQUIRE(pixels.features.size() == 1);
  CHECK(pixels.features[0].codes == 3);
}

TEST_CASE("coverage refuses what cannot be declared", "[data][features]") {
  const std::vector<float> rows{1000.0f, 1001.0f};
  QUANTRAIN_CHECK_ERROR(coverage(rows, {1000.0f, 1001.0f}), QuantError, "too far from 0");
  QUANTRAIN_CHECK_ERROR(coverage({}, {0.0f, 1.0f}), DataError, "0 values do not form rows");
  QUANTRAIN_CHECK_ERROR(
      coverage(rows, {0.0f, 1.0f}, {}, {"a", "b"}), DataError, "2 names for 1 features");
  QUANTRAIN_CHECK_ERROR(
      coverage(rows, {0.0f, 1.0f}, {{0.0f}, {0.0f}}), QuantError, "feature 0 has offset 0");
  QUANTRAIN_CHECK_ERROR(
      coverage(std::vector{std::nanf("")}, {0.0f, 1.0f}), DataError, "value nan at 0");
  QUANTRAIN_CHECK_ERROR(coverage(std::vector{3e38f}, {0.0f, 1.0f}, {{0.0f}, {0.1f}}),
                        DataError,
                        "after the feature's offset and scale");
}

TEST_CASE("spikes move neither the scale from fit_percentiles nor percentile_range",
          "[data][features]") {
  Random random(7);
  std::vector<float> rows;
  for (int i = 0; i < 20000; ++i) {
    rows.push_back(5.0f + 2.0f * random.normal());
    rows.push_back(random.uniform());
  }
  const integer::InputFeatures clean = fit_percentiles(rows, 2);
  // A normal distribution clipped at 2.576 deviations: 0.9909 deviations.
  CHECK(clean.offset[0] == test::Approx(5.0).margin(0.05));
  CHECK(clean.scale[0] == test::Approx(2.0 * 0.9909).margin(0.03));
  CHECK(clean.offset[1] == test::Approx(0.5).margin(0.01));
  CHECK(percentile_range(rows, clean) == feature_range(rows, clean));

  std::vector<float> spikes = rows;
  spikes[2 * 100] = 4000.0f;
  spikes[2 * 900] = -4000.0f;
  const integer::InputFeatures robust = fit_percentiles(spikes, 2);
  CHECK(robust.offset[0] == test::Approx(clean.offset[0]).margin(0.01));
  CHECK(robust.scale[0] == test::Approx(clean.scale[0]).margin(0.01));
  CHECK(robust.scale[1] == clean.scale[1]);
  CHECK(feature_range(spikes, robust).max > 2000.0f);
  // Percentiles at -+2.576 / 0.9909, and half of their distance on both sides.
  const Range range = percentile_range(spikes, robust);
  CHECK(range.min == test::Approx(-5.2).margin(0.15));
  CHECK(range.max == test::Approx(5.2).margin(0.15));
  const Range tight = percentile_range(spikes, robust, {}, 0.0f);
  CHECK(tight.max == test::Approx(2.6).margin(0.1));
  CHECK(coverage(spikes, range, robust).warnings().empty());
  CHECK(coverage(spikes, range, robust).features[0].codes > 120);
}

TEST_CASE("a feature whose percentiles are equal keeps its rare values", "[data][features]") {
  // Two of 1000 rows differ; the nearest ranks 5 and 995 are both 3.
  std::vector<float> rows(1000, 3.0f);
  rows[10] = 1.0f;
  rows[20] = 11.0f;
  const integer::InputFeatures fitted = fit_percentiles(rows, 1);
  CHECK(fitted == integer::InputFeatures{{3.0f}, {8.0f}});
  CHECK(percentile_range(rows, fitted) == Range{-0.25f, 1.0f});
  // Percentiles 0 and 100 clip nothing.
  const std::vector<float> four{1.0f, 2.0f, 3.0f, 6.0f};
  CHECK(fit_percentiles(four, 1, {}, {0.0, 100.0}) == fit_mean_std(four, 1));
  // The nearest ranks of 25 and 75 % of four values are 1 and 3: 1, 2, 3, 3.
  CHECK(fit_percentiles(four, 1, {}, {25.0, 75.0}) ==
        integer::InputFeatures{{2.25f}, {static_cast<float>(std::sqrt(0.6875))}});
  CHECK(percentile_range(four, {{0.0f}, {1.0f}}, {25.0, 75.0}, 1.0f) == Range{1.0f, 5.0f});
  CHECK(scaled(four, {{1.0f, 0.0f}, {2.0f, 4.0f}}) == std::vector<float>{0.0f, 0.5f, 1.0f, 1.5f});
}

TEST_CASE("percentiles and room are checked", "[data][features]") {
  const std::vector<float> rows{1.0f, 2.0f};
  for (const Percentiles wrong : {Percentiles{50.0, 50.0},
                                  Percentiles{-1.0, 50.0},
                                  Percentiles{0.0, 100.5},
                                  Percentiles{std::nan(""), 50.0}}) {
    QUANTRAIN_CHECK_ERROR(fit_percentiles(rows, 1, {}, wrong), DataError, "percentiles must be in");
    QUANTRAIN_CHECK_ERROR(
        percentile_range(rows, {{0.0f}, {1.0f}}, wrong), DataError, "percentiles must be in order");
  }
  QUANTRAIN_CHECK_ERROR(
      percentile_range(rows, {{0.0f}, {1.0f}}, {}, -0.5f), DataError, "room is -0.5, expected");
  QUANTRAIN_CHECK_ERROR(percentile_range(rows, {}), DataError, "rows have 0 features");
  QUANTRAIN_CHECK_ERROR(
      fit_percentiles(std::vector{2.0f, 2.0f}, 1), DataError, "feature 0 is 2 in all 2 rows");
  QUANTRAIN_CHECK_ERROR(fit_percentiles(rows, 3), DataError, "2 values do not form rows of 3");
  QUANTRAIN_CHECK_ERROR(scaled(rows, {}), DataError, "rows have 0 features");
}

}  // namespace quantrain
