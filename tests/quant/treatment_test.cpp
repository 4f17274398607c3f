// What a treatment must not do: lose a rare class, compare with clipped values, or stop halfway.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "quant/analysis/treat.hpp"
#include "tests/catch.hpp"
#include "tests/quant/sick_networks.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using test::fill;
using test::normals;
using test::prepare_and_calibrate;
using test::values_of;

constexpr int64_t kPeakRows = 1000;
constexpr int64_t kPeakColumns = 6;
constexpr Range kWideRange{-300.0f, 300.0f};

/// Six columns. In 5 % of the rows, column 0 has a peak of 8 to 16 deviations; the rare class are
/// those above 12. Column 1 has two spikes.
struct Peaks {
  std::vector<float> x = normals(kPeakRows * kPeakColumns, 17);
  std::vector<int32_t> labels = std::vector<int32_t>(kPeakRows, 0);

  Peaks() {
    Random random(4);
    for (int64_t row = 0; row < kPeakRows; row += 20) {
      float& peak = x[static_cast<size_t>(row * kPeakColumns)];
      peak = random.uniform(8.0f, 16.0f);
      labels[static_cast<size_t>(row)] = peak > 12.0f ? 1 : 0;
    }
    x[301] = 300.0f;
    x[901] = -300.0f;
  }
  DataLoader floats() const {
    return DataLoader{
        TensorDataset(SampleArray::floats({kPeakRows, kPeakColumns}, x), Labels{labels, 2}),
        {.batch = 50}};
  }
  DataLoader codes(Range range) const {
    return DataLoader{Dataset::from_floats(
                          {kPeakRows, kPeakColumns}, x, labels, 2, range, {}, Outside::kSaturate),
                      {.batch = 50}};
  }
};

/// The score of class 0 is 0, that of class 1 is column 0 - 12.
Sequential above_twelve() {
  Sequential net{Linear{kPeakColumns, 2}};
  fill(net, "0.weight", 1, 0.0f);
  fill(net, "0.bias", 1, 0.0f);
  values_of(net, "0.weight")[kPeakColumns] = 1.0f;
  values_of(net, "0.bias")[1] = -12.0f;
  return net;
}

Recipe recipe_for_peaks() {
  return {.make = [] { return std::make_unique<Sequential>(above_twelve()); },
          .config = QConfig::int8()};
}

const Finding& spikes(const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.kind == FindingKind::kInputSpikes) return finding;
  }
  FAIL("no spikes found");
  return diagnosis.findings[0];
}

}  // namespace

TEST_CASE("the treatment of spikes keeps a rare class", "[quant][doctor]") {
  const Peaks peaks;
  const bool in_codes = GENERATE(false, true);
  Recipe recipe = recipe_for_peaks();
  if (!in_codes) recipe.config.input_range = kWideRange;
  recipe.encode = [&](Range range) { return peaks.codes(range); };
  const DataLoader data = in_codes ? peaks.codes(kWideRange) : peaks.floats();
  Sequential net = above_twelve();
  prepare_and_calibrate(net, data, recipe.config);
  const Diagnosis diagnosis = diagnose(net, data);
  const LayerDiagnosis& input = diagnosis.layer("input");
  CHECK(input.floats.central.max < 12.5f);  // the middle 99 % of all columns cuts the rare class
  CHECK(input.usual.max > 15.0f);           // that of column 0, with room, does not
  CHECK(input.usual.max < 17.0f);
  const Finding& finding = spikes(diagnosis);
  CHECK(finding.advice.find("percentile_range(rows, features)") != std::string::npos);
  const Treatment t = treat(net, data, finding, recipe);
  std::ostringstream text;
  text << t;
  INFO(text.str());
  CHECK(t.before.classes->integers.recall(1) < 0.9);
  CHECK(t.after.classes->integers.recall(1) > 0.95);
  CHECK(t.cured());
  CHECK(text.str().find("recall of class 1") != std::string::npos);
  CHECK(t.encoded_again == in_codes);
  // rmse / spread is against floats that are clipped if the data were encoded again.
  CHECK((text.str().find("rmse / spread") == std::string::npos) == in_codes);
  // Plain floats are compared as they are, also beyond the new range.
  if (!in_codes) CHECK(t.after.layer("input").floats.range.max == 300.0f);
}

TEST_CASE("a treatment that loses a rare class is no cure", "[quant][doctor]") {
  const Peaks peaks;
  Recipe recipe = recipe_for_peaks();
  recipe.encode = [&](Range) { return peaks.codes({-3.0f, 8.0f}); };
  const DataLoader data = peaks.codes(kWideRange);
  Sequential net = above_twelve();
  prepare_and_calibrate(net, data, recipe.config);
  const Treatment t = treat(net, data, spikes(diagnose(net, data)), recipe);
  CHECK(t.after.classes->integers.recall(1) == 0.0);
  CHECK(t.worse() == std::vector<std::string>{"recall of class 1"});
  CHECK_FALSE(t.cured());
  std::ostringstream text;
  text << t;
  CHECK(text.str().find("(worse: recall of class 1)") != std::string::npos);
}

TEST_CASE("a treatment is worse if recall or error to targets change by more than noise",
          "[quant][doctor]") {
  const auto with = [](int64_t found, double error) {
    ConfusionMatrix matrix(2);
    for (int32_t i = 0; i < 30; ++i)
      matrix.add(std::vector<int32_t>{i < found ? 1 : 0}, std::vector<int32_t>{1});
    Diagnosis d;
    d.samples = 200;
    d.classes = ClassesDiagnosis{matrix, matrix, matrix};
    d.outputs = {{.name = "output", .target_rmse_float = 1.0, .target_rmse_integers = error}};
    return d;
  };
  Treatment t;
  t.before = with(28, 1.0);
  t.after = with(26, 1.05);  // two standard errors: 0.107, which are 3.2 samples, and 10 %
  CHECK(t.worse().empty());
  CHECK(t.cured());
  t.after = with(24, 1.0);
  CHECK(t.worse() == std::vector<std::string>{"recall of class 1"});
  t.before.classes->floats = with(24, 1.0).classes->floats;
  CHECK(t.worse().empty());  // no class is better in integers than in float, except by chance
  t.after = with(28, 1.15);
  CHECK(t.worse() == std::vector<std::string>{"error of output to its target"});
  CHECK_FALSE(t.cured());
}

TEST_CASE("a finding that cannot be treated keeps the treatments of the others",
          "[quant][doctor]") {
  const Peaks peaks;
  Recipe recipe = recipe_for_peaks();
  const DataLoader data = peaks.codes(kWideRange);
  Sequential net = above_twelve();
  prepare_and_calibrate(net, data, recipe.config);
  Diagnosis report = diagnose(net, data);
  const Finding refused = spikes(report);
  report.findings = {refused,
                     {.kind = FindingKind::kOutlierWeights, .layer = "0"},
                     {.kind = FindingKind::kDeadLayer, .layer = "no such layer"}};
  report.samples = 77;  // shows that the report is used, not made again
  const std::vector<Treatment> all = treat(net, data, report, recipe);
  REQUIRE(all.size() == 3);
  CHECK(all[0].refusal.find("set Recipe::encode") != std::string::npos);
  CHECK_FALSE(all[0].cured());
  CHECK(all[0].net == nullptr);
  CHECK(all[1].refusal.empty());
  CHECK(all[1].net != nullptr);
  CHECK(all[1].before.samples == 77);
  CHECK(all[2].refusal.find("no such layer") != std::string::npos);
  std::ostringstream text;
  text << all[0];
  CHECK(text.str().rfind("input spikes in \"input\": not treated: ", 0) == 0);
  QUANTRAIN_CHECK_ERROR(treat(net, data, report, Recipe{}), GraphError, "Recipe::make is null");
}

TEST_CASE("treat does not divide values that a range ending at 0 cannot hold", "[quant][doctor]") {
  const bool upper = GENERATE(true, false);
  std::vector<float> x = normals(4 * 256, 17);
  const auto data = [&](float sign, bool both) {
    std::vector<float> values = x;
    for (float& value : values) value = both ? value : sign * std::min(std::abs(value), 3.0f);
    return DataLoader{TensorDataset(SampleArray::floats({256, 4}, values), std::monostate{}),
                      {.batch = 32}};
  };
  Sequential net = test::two_layers(4, 8, 2);
  QConfig config = QConfig::int8();
  config.input_range = upper ? Range{-3.0f, 0.0f} : Range{0.0f, 3.0f};
  prepare_and_calibrate(net, data(upper ? -1.0f : 1.0f, false), config);
  const DataLoader both = data(1.0f, true);
  const Finding finding = diagnose(net, both).findings.at(0);
  CHECK(finding.kind == FindingKind::kInputNormalization);
  const Recipe recipe{
      .make = [] { return std::make_unique<Sequential>(test::two_layers(4, 8, 2)); },
      .config = config};
  QUANTRAIN_CHECK_ERROR(treat(net, both, finding, recipe), QuantError, "ends at 0");
}

TEST_CASE("the doctor sees values that saturated when they were encoded", "[quant][doctor]") {
  const bool labelled = GENERATE(true, false);
  const std::vector<float> x = normals(4 * 256, 17);
  const auto data = [&](Range range) {
    if (!labelled) return test::coded(4, x, range);
    return DataLoader{Dataset::from_floats(
        {256, 4}, x, std::vector<int32_t>(256, 1), 2, range, {}, Outside::kSaturate)};
  };
  const auto make = [] { return std::make_unique<Sequential>(test::two_layers(4, 8, 2)); };
  Recipe recipe{.make = make, .config = QConfig::int8()};
  recipe.encode = data;
  const std::unique_ptr<Sequential> net = make();
  prepare_and_calibrate(*net, data({-0.5f, 0.5f}), recipe.config);
  const Diagnosis d = diagnose(*net, data({-0.5f, 0.5f}));
  CHECK(d.layer("input").saturated() == Approx(0.617).margin(0.05));  // outside of 0.5 deviations
  REQUIRE_FALSE(d.findings.empty());
  CHECK(std::count_if(d.findings.begin(), d.findings.end(), [](const Finding& f) {
          return f.kind == FindingKind::kInputNormalization &&
                 f.cause.find("when they were encoded") != std::string::npos;
        }) == 1);
  CHECK(treat(*net, data({-0.5f, 0.5f}), d, recipe)[0].refusal.find("raw values again") !=
        std::string::npos);

  // Codes at the limits that did not saturate are no finding.
  const std::vector<float> ends(4 * 256, 0.5f);
  const DataLoader same{
      TensorDataset(SampleArray::encoded({256, 4}, ends, {-0.5f, 0.5f}), std::monostate{})};
  const Diagnosis at_ends = diagnose(*net, same);
  CHECK(at_ends.layer("input").saturated() == 0.0);
}

TEST_CASE("findings are sorted by what they change at the outputs", "[quant][doctor]") {
  // In "0", an outlier costs the other channels 16 bits, but nothing reads them. In "2", 2 bits
  // lose the outputs.
  const auto make = [] {
    auto net = std::make_unique<Sequential>(test::two_layers(4, 8, 2));
    float* const first = values_of(*net, "0.weight");
    for (int i = 8; i < 12; ++i) first[i] *= 1e5f;
    values_of(*net, "0.bias")[2] *= 1e5f;
    float* const last = values_of(*net, "2.weight");
    for (int i = 0; i < 16; ++i) last[i] *= i % 8 == 2 ? 1e-5f : 1e-3f;
    return net;
  };
  QConfig config = QConfig::int8();
  config.layers["2"] = config.model;
  config.layers["2"].weight.bits = 2;
  const DataLoader data = test::coded(4, normals(4 * 256, 17), {-4.5f, 4.5f});
  const std::unique_ptr<Sequential> net = make();
  prepare_and_calibrate(*net, data, config);
  const Diagnosis d = diagnose(*net, data);
  std::ostringstream text;
  text << d;
  INFO(text.str());
  REQUIRE(d.findings.size() == 2);
  CHECK(d.findings[0].layer == "2");
  CHECK(d.findings[1].kind == FindingKind::kOutlierChannel);
  CHECK(d.findings[0].bits_lost < d.findings[1].bits_lost);
  CHECK(d.findings[0].output_error > 0.5);
  CHECK(d.findings[1].output_error < 0.05);
}

}  // namespace quantrain::quant
