#include <algorithm>
#include <cmath>
#include <memory>

#include "quant/analysis/diagnose.hpp"
#include "tests/catch.hpp"
#include "tests/quant/sick_networks.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using test::coded;
using test::fill;
using test::normals;
using test::prepare_and_calibrate;
using test::two_layers;
using test::values_of;

constexpr Range kNormal{-4.5f, 4.5f};

DataLoader normal_data(int64_t features, int64_t n = 256) {
  return coded(features, normals(features * n, 17), kNormal);
}

/// y = last(concat(first(x), second(x))), where first(x) is 400 times as large as second(x). Both
/// matter: the weights that read the large operand are small.
class Unequal : public Module {
 public:
  Unequal()
      : first_(add("first", Linear{4, 3})),
        second_(add("second", Linear{4, 3})),
        concat_(add("concat", Concat{})),
        last_(add("last", Linear{6, 2})) {
    uint64_t seed = 5;
    for (const char* name : {"first", "second", "last"}) {
      fill(*this, std::string(name) + ".weight", seed++, 0.5f);
      fill(*this, std::string(name) + ".bias", seed++, 0.1f);
    }
    float* const large = values_of(*this, "first.weight");
    for (int i = 0; i < 12; ++i) large[i] *= 400.0f;
    float* const last = values_of(*this, "last.weight");
    for (int i = 0; i < 12; ++i) last[i] *= i % 6 < 3 ? 1.0f / 400.0f : 1.0f;
  }
  std::string_view type() const override { return "Unequal"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return (*last_)((*concat_)((*first_)(x), (*second_)(x)));
  }

 private:
  std::shared_ptr<Linear> first_;
  std::shared_ptr<Linear> second_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<Linear> last_;
};

Finding first_finding(Module& net, const DataLoader& data, const QConfig& config) {
  prepare_and_calibrate(net, data, config);
  const Diagnosis diagnosis = diagnose(net, data);
  INFO(diagnosis);
  CHECK(diagnosis.integers_different == 0);
  REQUIRE_FALSE(diagnosis.findings.empty());
  return diagnosis.findings[0];
}

}  // namespace

TEST_CASE("the doctor finds spikes in the input", "[quant][doctor]") {
  std::vector<float> x = normals(4 * 512, 17);
  for (size_t i = 0; i < x.size(); i += 300) x[i] *= 40.0f;
  x[0] = -103.0f;
  x[300] = 97.0f;
  Sequential net = two_layers(4, 8, 2);
  const Finding finding = first_finding(net, coded(4, x, {-103.0f, 97.0f}), QConfig::int8());
  CHECK(finding.kind == FindingKind::kInputSpikes);
  CHECK(finding.layer == "input");
  CHECK(finding.number == Approx(8.0).margin(2.0));  // 5.2 to 6 sigma at 0.78 for a code
}

TEST_CASE("the doctor finds an input that takes a small part of its range", "[quant][doctor]") {
  std::vector<float> x = normals(4 * 256, 17);
  for (float& value : x) value = std::abs(value);
  Sequential net = two_layers(4, 8, 2);
  const Finding finding = first_finding(net, coded(4, x, {0.0f, 255.0f}), QConfig::int8());
  CHECK(finding.kind == FindingKind::kInputNormalization);
  CHECK(finding.number < 6.0 / 256.0);
}

TEST_CASE("the doctor finds an input that saturates", "[quant][doctor]") {
  const auto images = [](float scale) {
    std::vector<float> x = normals(4 * 256, 17);
    for (float& value : x) value = scale * std::min(1.0f, std::abs(value) / 4.0f);
    return DataLoader{TensorDataset(SampleArray::floats({256, 4}, x), std::monostate{}),
                      {.batch = 32}};
  };
  QConfig config = QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  Sequential net = two_layers(4, 8, 2);
  prepare_and_calibrate(net, images(1.0f), config);
  CHECK(diagnose(net, images(1.0f)).findings.empty());
  const Diagnosis wrong = diagnose(net, images(255.0f));
  REQUIRE_FALSE(wrong.findings.empty());
  CHECK(wrong.findings[0].kind == FindingKind::kInputNormalization);
  CHECK(wrong.findings[0].number > 0.9);
}

TEST_CASE("the doctor finds rare events that the range cuts off", "[quant][doctor]") {
  std::vector<float> x = normals(64, 17);
  for (float& value : x) value = 0.05f * std::min(2.0f, std::abs(value));
  x[9] = 1.0f;
  Sequential net{Linear{1, 1}};
  values_of(net, "0.weight")[0] = 1.0f;
  values_of(net, "0.bias")[0] = 0.0f;
  QConfig config = QConfig::int8();
  config.output_bits = 8;
  config.model.activation.observer = PercentileOptions{.high = 90.0};
  const Finding finding = first_finding(net, coded(1, x, {0.0f, 1.0f}), config);
  CHECK(finding.kind == FindingKind::kRareCutOff);
  CHECK(finding.layer == "0");
}

TEST_CASE("the doctor finds values far from zero", "[quant][doctor]") {
  Sequential net{Linear{4, 4}, Linear{4, 2}};
  fill(net, "0.weight", 1, 0.1f);
  fill(net, "1.weight", 2, 0.5f);
  for (int i = 0; i < 4; ++i) values_of(net, "0.bias")[i] = 1000.0f;
  const Finding finding = first_finding(net, normal_data(4), QConfig::int8());
  CHECK(finding.kind == FindingKind::kFarRange);
  CHECK(finding.layer == "0");
  CHECK(finding.number < 2.0);
}

TEST_CASE("the doctor finds an operand that loses its codes", "[quant][doctor]") {
  Unequal net;
  const Finding finding = first_finding(net, normal_data(4), QConfig::int8());
  CHECK(finding.kind == FindingKind::kUnequalOperands);
  CHECK(finding.layer == "concat");
  CHECK(finding.cause.find("\"second\"") != std::string::npos);
  CHECK(finding.bits_lost == Approx(std::log2(400.0)).margin(1.0));
}

TEST_CASE("the doctor finds outputs of unequal size", "[quant][doctor]") {
  Sequential net = two_layers(4, 8, 2);
  float* const w = values_of(net, "2.weight");
  for (int i = 0; i < 8; ++i) w[i] *= 100.0f;
  for (int i = 8; i < 16; ++i) w[i] *= 0.1f;
  QConfig config = QConfig::int8();
  config.output_bits = 8;
  const Finding finding = first_finding(net, normal_data(4), config);
  CHECK(finding.kind == FindingKind::kUnequalOutputs);
  CHECK(finding.number > 0.5);
}

TEST_CASE("the doctor finds a dead layer", "[quant][doctor]") {
  Sequential net = two_layers(4, 8, 2);
  for (int i = 0; i < 6; ++i) values_of(net, "0.bias")[i] = -50.0f;
  const Finding finding = first_finding(net, normal_data(4), QConfig::int8());
  CHECK(finding.kind == FindingKind::kDeadLayer);
  CHECK(finding.layer == "0");
  CHECK(finding.number == 6.0);
}

TEST_CASE("the doctor finds an outlier among per-tensor weights", "[quant][doctor]") {
  Sequential net = two_layers(4, 8, 2);
  for (int i = 8; i < 12; ++i) values_of(net, "0.weight")[i] *= 200.0f;
  for (int o = 0; o < 2; ++o) values_of(net, "2.weight")[8 * o + 2] /= 200.0f;
  QConfig config = QConfig::int8();
  config.layers["0"] = config.model;
  config.layers["0"].weight.per_channel = false;
  const Finding finding = first_finding(net, normal_data(4), config);
  CHECK(finding.kind == FindingKind::kOutlierWeights);
  CHECK(finding.layer == "0");
}

TEST_CASE("the doctor finds an outlier among channels", "[quant][doctor]") {
  Sequential net = two_layers(4, 8, 2);
  for (int i = 8; i < 12; ++i) values_of(net, "0.weight")[i] *= 200.0f;
  for (int o = 0; o < 2; ++o) values_of(net, "2.weight")[8 * o + 2] /= 200.0f;
  const Finding finding = first_finding(net, normal_data(4), QConfig::int8());
  CHECK(finding.kind == FindingKind::kOutlierChannel);
  CHECK(finding.layer == "0");
  CHECK(finding.cause.find("channel 2") != std::string::npos);
}

TEST_CASE("the doctor finds a learned scale that is stuck", "[quant][doctor]") {
  const bool weight = GENERATE(true, false);
  Sequential net = two_layers(4, 8, 2);
  QConfig config = QConfig::int8();
  config.layers["0"] = config.model;
  (weight ? config.layers["0"].weight.estimator : config.layers["0"].activation.estimator) =
      Estimator::kLearned;
  const DataLoader data = normal_data(4);
  prepare_and_calibrate(net, data, config);
  CHECK(diagnose(net, data).findings.empty());
  float* const scale = values_of(net, weight ? "0.weight_slot.scale" : "1.output_slot.scale");
  for (int i = 0; i < (weight ? 8 : 1); ++i) scale[i] = 1e-7f;
  const Diagnosis sick = diagnose(net, data);
  REQUIRE_FALSE(sick.findings.empty());
  CHECK(sick.findings[0].kind == FindingKind::kStuckScale);
  CHECK(sick.findings[0].layer == "0");
}

TEST_CASE("the doctor finds the layer that has too few bits", "[quant][doctor]") {
  const bool weight = GENERATE(true, false);
  Sequential net = two_layers(4, 8, 2);
  QConfig config = QConfig::int8();
  config.layers["0"] = config.model;
  (weight ? config.layers["0"].weight.bits : config.layers["0"].activation.bits) = 2;
  config.layers["0"].activation.observer = MinMaxOptions{};
  const Finding finding = first_finding(net, normal_data(4), config);
  CHECK(finding.kind == FindingKind::kTooFewBits);
  CHECK(finding.layer == "0");
  CHECK(finding.advice ==
        std::string("config.layers[\"0\"].") + (weight ? "weight" : "activation") + ".bits = 4");
}

}  // namespace quantrain::quant
