#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "framework/core/error.hpp"
#include "quant/analysis/treat.hpp"
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

/// Its first finding, after it was treated on a copy.
Treatment first_treated(Module& net, const DataLoader& data, const Recipe& recipe) {
  const Diagnosis diagnosis = diagnose(net, data);
  INFO(diagnosis);
  CHECK(diagnosis.integers_different == 0);
  REQUIRE_FALSE(diagnosis.findings.empty());
  const std::string before = diagnosis.to_json();
  Treatment treatment = treat(net, data, diagnosis.findings[0], recipe);
  INFO(treatment);
  CHECK(treatment.cured());
  CHECK(treatment.after.integers_different == 0);
  CHECK(diagnose(net, data).to_json() == before);  // the network itself stays sick
  return treatment;
}

Treatment prepared_and_treated(Module& net, const DataLoader& data, const Recipe& recipe) {
  prepare_and_calibrate(net, data, recipe.config);
  return first_treated(net, data, recipe);
}

Recipe recipe_of(std::function<Sequential()> make, const QConfig& config) {
  return {.make = [make] { return std::make_unique<Sequential>(make()); }, .config = config};
}

double worst_relative(const Diagnosis& diagnosis) {
  double worst = 0.0;
  for (const OutputDiagnosis& output : diagnosis.outputs) worst = std::max(worst, output.relative);
  return worst;
}

Sequential plain() { return two_layers(4, 8, 2); }

}  // namespace

TEST_CASE("the doctor finds and treats spikes in the input", "[quant][doctor]") {
  std::vector<float> x = normals(4 * 512, 17);
  for (size_t i = 0; i < x.size(); i += 301) x[i] *= 40.0f;  // in all columns
  x[0] = -103.0f;
  x[301] = 97.0f;
  Sequential net = plain();
  Recipe recipe = recipe_of(plain, QConfig::int8());
  recipe.encode = [&](Range range) { return coded(4, x, range); };
  const DataLoader data = coded(4, x, {-103.0f, 97.0f});
  const Treatment t = prepared_and_treated(net, data, recipe);
  CHECK(t.finding.kind == FindingKind::kInputSpikes);
  CHECK(t.finding.layer == "input");
  CHECK(t.finding.number == Approx(8.0).margin(2.0));   // 5.2 to 6 sigma at 0.78 for a code
  CHECK(t.after.layer("input").codes_central > 100.0);  // the rest is room
  recipe.encode = nullptr;
  QUANTRAIN_CHECK_ERROR(treat(net, data, t.finding, recipe), QuantError, "set Recipe::encode");
}

TEST_CASE("the doctor finds and treats an input that takes a small part of its range",
          "[quant][doctor]") {
  std::vector<float> x = normals(4 * 256, 17);
  for (float& value : x) value = std::abs(value);
  Sequential net = plain();
  Recipe recipe = recipe_of(plain, QConfig::int8());
  recipe.encode = [&](Range range) { return coded(4, x, range); };
  const Treatment t = prepared_and_treated(net, coded(4, x, {0.0f, 255.0f}), recipe);
  CHECK(t.finding.kind == FindingKind::kInputNormalization);
  CHECK(t.finding.number < 6.0 / 256.0);
  CHECK(t.after.layer("input").codes_range > 200.0);
}

TEST_CASE("the doctor finds and treats an input that saturates", "[quant][doctor]") {
  const auto images = [](float scale) {
    std::vector<float> x = normals(4 * 256, 17);
    for (float& value : x) value = scale * std::min(1.0f, std::abs(value) / 4.0f);
    return DataLoader{TensorDataset(SampleArray::floats({256, 4}, x), std::monostate{}),
                      {.batch = 32}};
  };
  Recipe recipe = recipe_of(plain, QConfig::int8());
  recipe.config.input_range = {0.0f, 1.0f};
  Sequential net = plain();
  prepare_and_calibrate(net, images(1.0f), recipe.config);
  CHECK(diagnose(net, images(1.0f)).findings.empty());
  const Treatment t = first_treated(net, images(255.0f), recipe);
  CHECK(t.finding.kind == FindingKind::kInputNormalization);
  CHECK(t.finding.number > 0.9);
  CHECK(t.after.layer("input").saturated() == 0.0);
  CHECK(t.after.layer("0").snr_accumulated > 35.0);
  CHECK(t.before.layer("0").snr_accumulated < 1.0);
}

TEST_CASE("the doctor finds and treats rare events that the range cuts off", "[quant][doctor]") {
  std::vector<float> x = normals(64, 17);
  for (float& value : x) value = 0.05f * std::min(2.0f, std::abs(value));
  x[9] = 1.0f;
  const auto identity = [] {
    Sequential net{Linear{1, 1}};
    values_of(net, "0.weight")[0] = 1.0f;
    values_of(net, "0.bias")[0] = 0.0f;
    return net;
  };
  Recipe recipe = recipe_of(identity, QConfig::int8());
  recipe.config.output_bits = 8;
  recipe.config.model.activation.observer = PercentileOptions{.high = 90.0};
  Sequential net = identity();
  const Treatment t = prepared_and_treated(net, coded(1, x, {0.0f, 1.0f}), recipe);
  CHECK(t.finding.kind == FindingKind::kRareCutOff);
  CHECK(t.finding.layer == "0");
  CHECK(t.before.outputs[0].max_error > 0.8);  // the event becomes 0.1 or so
  CHECK(t.after.outputs[0].max_error < 0.02);  // within 2 %
}

TEST_CASE("the doctor finds and treats values far from zero", "[quant][doctor]") {
  const auto far = [] {
    Sequential net{Linear{4, 4}, Linear{4, 2}};
    fill(net, "0.weight", 1, 0.1f);
    fill(net, "1.weight", 2, 0.5f);
    fill(net, "1.bias", 3, 0.5f);
    for (int i = 0; i < 4; ++i) values_of(net, "0.bias")[i] = 1000.0f;
    return net;
  };
  Sequential net = far();
  const Treatment t = prepared_and_treated(net, normal_data(4), recipe_of(far, QConfig::int8()));
  CHECK(t.finding.kind == FindingKind::kFarRange);
  CHECK(t.finding.layer == "0");
  CHECK(t.finding.number < 2.0);
  CHECK(worst_relative(t.before) > 0.5);
  CHECK(worst_relative(t.after) < 0.05);
  CHECK(t.after.outputs[0].spread == Approx(t.before.outputs[0].spread).epsilon(0.01));
}

TEST_CASE("the doctor finds and treats an operand that loses its codes", "[quant][doctor]") {
  Unequal net;
  const Treatment t = prepared_and_treated(
      net,
      normal_data(4),
      {.make = [] { return std::make_unique<Unequal>(); }, .config = QConfig::int8()});
  CHECK(t.finding.kind == FindingKind::kUnequalOperands);
  CHECK(t.finding.layer == "concat");
  CHECK(t.finding.operand == "second");
  CHECK(t.finding.bits_lost == Approx(std::log2(400.0)).margin(1.0));
  CHECK(worst_relative(t.before) > 0.2);
  CHECK(worst_relative(t.after) < 0.05);
  CHECK(t.after.outputs[0].spread == Approx(t.before.outputs[0].spread).epsilon(0.01));
}

TEST_CASE("the doctor finds and treats outputs of unequal size", "[quant][doctor]") {
  const auto unequal = [] {
    Sequential net = plain();
    float* const w = values_of(net, "2.weight");
    for (int i = 0; i < 8; ++i) w[i] *= 100.0f;
    for (int i = 8; i < 16; ++i) w[i] *= 0.1f;
    return net;
  };
  Recipe recipe = recipe_of(unequal, QConfig::int8());
  recipe.config.output_bits = 8;
  Sequential net = unequal();
  const Treatment t = prepared_and_treated(net, normal_data(4), recipe);
  CHECK(t.finding.kind == FindingKind::kUnequalOutputs);
  CHECK(t.finding.number > 0.5);
  CHECK(worst_relative(t.after) < 0.05);
}

TEST_CASE("the doctor finds and treats a dead layer", "[quant][doctor]") {
  const auto dead = [] {
    Sequential net = plain();
    for (int i = 0; i < 7; ++i) values_of(net, "0.bias")[i] = -50.0f;
    return net;
  };
  Sequential net = dead();
  Recipe recipe = recipe_of(dead, QConfig::int8());
  int trained = 0;
  recipe.train = [&](Module&) { ++trained; };
  const Treatment t = prepared_and_treated(net, normal_data(4), recipe);
  CHECK(t.finding.kind == FindingKind::kDeadLayer);
  CHECK(t.finding.layer == "0");
  CHECK(t.finding.number == 7.0);
  CHECK(t.after.layer("0").constant == 0);
  CHECK(trained == 1);
}

// A channel that is 200 times as large as the others; the next layer takes the factor back.
Sequential with_outlier() {
  Sequential net = plain();
  for (int i = 8; i < 12; ++i) values_of(net, "0.weight")[i] *= 200.0f;
  for (int o = 0; o < 2; ++o) values_of(net, "2.weight")[8 * o + 2] /= 200.0f;
  return net;
}

TEST_CASE("the doctor finds and treats an outlier among per-tensor weights", "[quant][doctor]") {
  Recipe recipe = recipe_of(with_outlier, QConfig::int8());
  recipe.config.layers["0"] = recipe.config.model;
  recipe.config.layers["0"].weight.per_channel = false;
  Sequential net = with_outlier();
  const Treatment t = prepared_and_treated(net, normal_data(4), recipe);
  CHECK(t.finding.kind == FindingKind::kOutlierWeights);
  CHECK(t.finding.layer == "0");
  CHECK(t.before.layer("0").weights->worst_snr < 10.0);
  CHECK(t.after.layer("0").weights->worst_snr > 40.0);
}

TEST_CASE("the doctor finds and treats an outlier among channels", "[quant][doctor]") {
  Sequential net = with_outlier();
  const Treatment t =
      prepared_and_treated(net, normal_data(4), recipe_of(with_outlier, QConfig::int8()));
  CHECK(t.finding.kind == FindingKind::kOutlierChannel);
  CHECK(t.finding.layer == "0");
  CHECK(t.finding.cause.find("channel 2") != std::string::npos);
  CHECK(worst_relative(t.before) > 0.1);
  CHECK(worst_relative(t.after) < 0.05);
}

TEST_CASE("the doctor finds and treats a learned scale that is stuck", "[quant][doctor]") {
  const bool weight = GENERATE(true, false);
  Sequential net = plain();
  Recipe recipe = recipe_of(plain, QConfig::int8());
  LayerConfig& layer = recipe.config.layers["0"] = recipe.config.model;
  (weight ? layer.weight.estimator : layer.activation.estimator) = Estimator::kLearned;
  const DataLoader data = normal_data(4);
  prepare_and_calibrate(net, data, recipe.config);
  CHECK(diagnose(net, data).findings.empty());
  float* const scale = values_of(net, weight ? "0.weight_slot.scale" : "1.output_slot.scale");
  for (int i = 0; i < (weight ? 8 : 1); ++i) scale[i] = 1e-7f;
  const Treatment t = first_treated(net, data, recipe);
  CHECK(t.finding.kind == FindingKind::kStuckScale);
  CHECK(t.finding.layer == "0");
  CHECK(worst_relative(t.before) > 0.5);
  CHECK(worst_relative(t.after) < 0.05);
}

TEST_CASE("the doctor finds and treats the layer that has too few bits", "[quant][doctor]") {
  const bool weight = GENERATE(true, false);
  Sequential net = plain();
  Recipe recipe = recipe_of(plain, QConfig::int8());
  LayerConfig& layer = recipe.config.layers["0"] = recipe.config.model;
  (weight ? layer.weight.bits : layer.activation.bits) = 2;
  layer.activation.observer = MinMaxOptions{};
  prepare_and_calibrate(net, normal_data(4), recipe.config);
  const Finding finding = diagnose(net, normal_data(4)).findings.at(0);
  CHECK(finding.kind == FindingKind::kTooFewBits);
  CHECK(finding.layer == "0");
  CHECK(finding.advice ==
        std::string("config.layers[\"0\"].") + (weight ? "weight" : "activation") + ".bits = 4");
  const Treatment t = treat(net, normal_data(4), finding, recipe);
  CHECK(worst_relative(t.after) < 0.5 * worst_relative(t.before));
}

TEST_CASE("treat refuses what it cannot do", "[quant][doctor]") {
  Sequential net = with_outlier();
  const DataLoader data = normal_data(4);
  prepare_and_calibrate(net, data, QConfig::int8());
  const Finding finding = diagnose(net, data).findings.at(0);
  QUANTRAIN_CHECK_ERROR(treat(net, data, finding, {}), GraphError, "Recipe::make is null");
  Recipe other = recipe_of(
      [] {
        return Sequential{Linear{4, 8}, Linear{8, 8}, Linear{8, 2}};
      },
      QConfig::int8());
  QUANTRAIN_CHECK_ERROR(treat(net, data, finding, other), GraphError, "\"1.weight\"");
  Sequential six{Linear{4, 8}, ReLU6{}, Linear{8, 2}};
  const auto with_relu6 = [] { return Sequential{Linear{4, 8}, ReLU6{}, Linear{8, 2}}; };
  prepare_and_calibrate(six, data, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(treat(six, data, finding, recipe_of(with_relu6, QConfig::int8())),
                        QuantError,
                        "does not pass ReLU6");
  CHECK(treat(net, data, diagnose(net, data), recipe_of(with_outlier, QConfig::int8())).size() ==
        1);
}

}  // namespace quantrain::quant
