// What the doctor finds from targets and labels alone: rows that integers miss, although they are
// too few to matter for the signal-to-noise.
#include <cmath>
#include <memory>
#include <sstream>

#include "framework/core/error.hpp"
#include "quant/analysis/treat.hpp"
#include "tests/catch.hpp"
#include "tests/quant/sick_networks.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using test::prepare_and_calibrate;
using test::values_of;

constexpr int64_t kLineRows = 1000;
constexpr Range kLineRange{-4.0f, 4.0f};

/// x in [-1, 1]; `rare` rows, spread over the data, have x = 2.
std::vector<float> line_rows(int64_t rare) {
  Random random(3);
  std::vector<float> x;
  for (int64_t i = 0; i < kLineRows; ++i) x.push_back(random.uniform(-1.0f, 1.0f));
  for (int64_t i = 0; i < rare; ++i) x[static_cast<size_t>(i * kLineRows / rare + 77)] = 2.0f;
  return x;
}

/// y = x, by relu(x) - relu(-x).
Sequential same_line() {
  Sequential net{Linear{1, 2}, ReLU{}, Linear{2, 1}};
  for (const char* name : {"0.weight", "2.weight"}) {
    values_of(net, name)[0] = 1.0f;
    values_of(net, name)[1] = -1.0f;
  }
  for (const char* name : {"0.bias", "2.bias"}) test::fill(net, name, 1, 0.0f);
  return net;
}

DataLoader line_data(const std::vector<float>& x, Range range) {
  const Shape shape{kLineRows, 1};
  return DataLoader{TensorDataset(SampleArray::encoded(shape, x, range, {}, Outside::kSaturate),
                                  SampleArray::floats(shape, x))};
}

Recipe recipe_for_line(Sequential (*make)()) {
  return {.make = [make] { return std::make_unique<Sequential>(make()); },
          .config = QConfig::int8()};
}

std::string text_of_line(const Diagnosis& diagnosis) {
  std::ostringstream text;
  text << diagnosis;
  return text.str();
}

}  // namespace

TEST_CASE("the doctor finds rows that the calibration did not see, from their targets",
          "[quant][doctor]") {
  Sequential net = same_line();
  prepare_and_calibrate(net, line_data(line_rows(0), kLineRange), QConfig::int8());
  CHECK(diagnose(net, line_data(line_rows(0), kLineRange)).findings.empty());

  // One row in a thousand: y(2) = 1, which adds 0.3 % of the signal's power as noise.
  const DataLoader data = line_data(line_rows(1), kLineRange);
  const Diagnosis d = diagnose(net, data);
  INFO(text_of_line(d));
  REQUIRE(d.outputs.size() == 1);
  REQUIRE(d.outputs[0].largest_targets);
  const LargestTargets& largest = *d.outputs[0].largest_targets;
  CHECK(largest.rows == 10);
  CHECK(largest.targets.max == 2.0f);
  CHECK(std::abs(largest.targets.min) > 0.98f);
  // One row is off by 1, the others by a step or so; their distances from 0 are 2 and nearly 1.
  CHECK(largest.rmse_integers == Approx(std::sqrt(1.0 / 10.0)).epsilon(0.02));
  CHECK(largest.distance == Approx(std::sqrt((4.0 + 9.0) / 10.0)).epsilon(0.02));
  CHECK(largest.rmse_float < 0.02);
  REQUIRE_FALSE(d.findings.empty());
  const Finding& first = d.findings[0];
  CHECK(first.kind == FindingKind::kRareCutOff);
  CHECK(first.layer == "0");
  CHECK(first.number > 10.0);
  CHECK(first.output_error == Approx(std::sqrt(1.0 / 13.0)).epsilon(0.03));
  CHECK(first.cause.find("largest targets (10, between") != std::string::npos);
  CHECK(first.advice.find("calibrate with data that hold these rows") == 0);
  CHECK(text_of_line(d).find("of the targets' spread or recall") != std::string::npos);
  CHECK(d.to_html().find("of the targets' spread or recall") != std::string::npos);

  const Treatment t = treat(net, data, first, recipe_for_line(same_line));
  CHECK(t.cured());
  CHECK(t.after.findings.empty());
  CHECK(t.after.outputs[0].largest_targets->rmse_integers < 0.02);
}

TEST_CASE("the doctor looks at the rows with the largest targets of a large data set",
          "[quant][doctor]") {
  constexpr int64_t kMany = 20000;
  Random random(5);
  std::vector<float> x;
  for (int64_t i = 0; i < kMany; ++i) x.push_back(random.uniform(-1.0f, 1.0f));
  x[12345] = -2.0f;
  const DataLoader data{TensorDataset(SampleArray::encoded({kMany, 1}, x, kLineRange),
                                      SampleArray::floats({kMany, 1}, x)),
                        {.batch = 100}};
  Sequential net = same_line();
  prepare_and_calibrate(net, line_data(line_rows(0), kLineRange), QConfig::int8());
  const Diagnosis d = diagnose(net, data, {.samples = 500});
  INFO(text_of_line(d));
  CHECK(d.samples > 500);
  CHECK(d.samples <= 516);
  CHECK(d.outputs[0].largest_targets->targets.min == -2.0f);
  CHECK(d.worst[0].index == 12345);
  REQUIRE_FALSE(d.findings.empty());
  CHECK(d.findings[0].kind == FindingKind::kRareCutOff);
  CHECK(d.findings[0].layer == "0");
}

TEST_CASE("the doctor finds a class that integers lose", "[quant][doctor]") {
  // Class 1 is x > 1.5: two rows in a thousand.
  const auto above = [] {
    Sequential net{Linear{1, 2}, ReLU{}, Linear{2, 2}};
    for (const char* name : {"0.weight", "2.weight", "2.bias"}) test::fill(net, name, 1, 0.0f);
    test::fill(net, "0.bias", 1, 0.0f);
    values_of(net, "0.weight")[0] = 1.0f;
    values_of(net, "0.weight")[1] = -1.0f;
    values_of(net, "2.weight")[2] = 1.0f;
    values_of(net, "2.weight")[3] = -1.0f;
    values_of(net, "2.bias")[1] = -1.5f;
    return net;
  };
  const auto labeled = [](int64_t rare) {
    const std::vector<float> x = line_rows(rare);
    std::vector<int32_t> labels;
    for (const float value : x) labels.push_back(value > 1.5f ? 1 : 0);
    return DataLoader{Dataset::from_floats({kLineRows, 1}, x, labels, 2, kLineRange)};
  };
  Sequential net = above();
  prepare_and_calibrate(net, labeled(0), QConfig::int8());
  const DataLoader data = labeled(2);
  const Diagnosis d = diagnose(net, data);
  INFO(text_of_line(d));
  CHECK(d.classes->floats.recall(1) == 1.0);
  CHECK(d.classes->integers.recall(1) == 0.0);
  REQUIRE_FALSE(d.findings.empty());
  CHECK(d.findings[0].kind == FindingKind::kRareCutOff);
  CHECK(d.findings[0].layer == "0");
  const Treatment t = treat(net, data, d.findings[0], recipe_for_line(above));
  CHECK(t.cured());
  CHECK(t.after.classes->integers.recall(1) == 1.0);
}

TEST_CASE("the doctor finds rows that were clipped when they were encoded, from their targets",
          "[quant][doctor]") {
  const Range narrow{-1.1f, 1.1f};
  Sequential net = same_line();
  prepare_and_calibrate(net, line_data(line_rows(0), narrow), QConfig::int8());
  CHECK(diagnose(net, line_data(line_rows(0), narrow)).findings.empty());
  const DataLoader data = line_data(line_rows(5), narrow);
  const Diagnosis d = diagnose(net, data);
  INFO(text_of_line(d));
  REQUIRE(d.outputs[0].clipped_rows);
  CHECK(d.outputs[0].clipped_rows->rows == 5);
  CHECK(d.outputs[0].clipped_rows->rmse_float == Approx(0.9).margin(0.02));  // 2 became 1.1
  CHECK(d.outputs[0].clipped_rows->rmse_float_others < 0.02);
  REQUIRE_FALSE(d.findings.empty());
  CHECK(d.findings[0].kind == FindingKind::kRareCutOff);
  CHECK(d.findings[0].layer == "input");
  CHECK(d.findings[0].number == Approx(0.005));
  CHECK(d.findings[0].advice.find("encode the raw values again") == 0);
  QUANTRAIN_CHECK_ERROR(treat(net, data, d.findings[0], recipe_for_line(same_line)),
                        QuantError,
                        "the codes do not say how large they were");
}

TEST_CASE("the doctor finds a range that is too wide for the data, from their targets",
          "[quant][doctor]") {
  // The second column, 1 only in the data for calibration, drives a hidden channel to 100.
  const auto make = [] {
    Sequential net{Linear{2, 3}, ReLU{}, Linear{3, 1}};
    const float first[] = {1.0f, 0.0f, -1.0f, 0.0f, 0.0f, 100.0f};
    const float last[] = {1.0f, -1.0f, 0.0f};
    std::copy(first, first + 6, values_of(net, "0.weight"));
    std::copy(last, last + 3, values_of(net, "2.weight"));
    for (const char* name : {"0.bias", "2.bias"}) test::fill(net, name, 1, 0.0f);
    return net;
  };
  const auto data_with = [](float second) {
    std::vector<float> both;
    const std::vector<float> x = line_rows(0);
    for (const float value : x) both.insert(both.end(), {value, second});
    return DataLoader{TensorDataset(SampleArray::encoded({kLineRows, 2}, both, {-1.0f, 1.0f}),
                                    SampleArray::floats({kLineRows, 1}, x))};
  };
  Sequential net = make();
  prepare_and_calibrate(net, data_with(1.0f), QConfig::int8());
  const Diagnosis d = diagnose(net, data_with(0.0f));
  INFO(text_of_line(d));
  REQUIRE_FALSE(d.findings.empty());
  CHECK(d.findings[0].kind == FindingKind::kTargetError);
  CHECK(d.findings[0].layer == "0");
  CHECK(d.findings[0].cause.find("all values of this layer lie within") != std::string::npos);
  CHECK(d.findings[0].advice.find("calibrate with data like these") == 0);
  const Treatment t = treat(net, data_with(0.0f), d.findings[0], recipe_for_line(make));
  CHECK(t.cured());
  // A step of 100 / 255 in each of two halves.
  CHECK(*t.before.outputs[0].target_rmse_integers ==
        Approx(100.0 / 255.0 / std::sqrt(12.0)).epsilon(0.1));
  CHECK(*t.after.outputs[0].target_rmse_integers < 0.01);
}

TEST_CASE("the doctor takes targets [N] of an output [N, 1]", "[quant][doctor]") {
  const std::vector<float> x = line_rows(0);
  const auto data = [&](const Shape& targets) {
    return DataLoader{TensorDataset(SampleArray::encoded({kLineRows, 1}, x, kLineRange),
                                    SampleArray::floats(targets, x))};
  };
  Sequential net = same_line();
  prepare_and_calibrate(net, data({kLineRows}), QConfig::int8());
  const Diagnosis flat = diagnose(net, data({kLineRows}));
  const Diagnosis column = diagnose(net, data({kLineRows, 1}));
  CHECK(flat.to_json() == column.to_json());
  CHECK(flat.outputs[0].largest_targets->rows == 10);
  QUANTRAIN_CHECK_ERROR(diagnose(net, data({kLineRows, 1, 1})), ShapeError, "target 0 is");
}

}  // namespace quantrain::quant
