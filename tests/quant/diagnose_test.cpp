#include "quant/analysis/diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/core/error.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/sick_networks.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using test::coded;
using test::normals;
using test::prepare_and_calibrate;
using test::two_layers;

// y = 2 x + 1 on codes of [0, 1]: everything can be computed by hand.
Sequential line() {
  Sequential net{Linear{1, 1}};
  test::values_of(net, "0.weight")[0] = 2.0f;
  test::values_of(net, "0.bias")[0] = 1.0f;
  return net;
}

// The targets are 0.5 larger than the line.
DataLoader unit_values() {
  std::vector<float> x;
  std::vector<float> y;
  for (int64_t i = 0; i < 256; ++i) {
    x.push_back(static_cast<float>(i) / 255.0f);
    y.push_back(2.0f * x.back() + 1.5f);
  }
  return DataLoader{TensorDataset(SampleArray::encoded({256, 1}, x, {0.0f, 1.0f}),
                                  SampleArray::floats({256, 1}, y)),
                    {.batch = 16}};
}

Diagnosis diagnosis_of_line() {
  Sequential net = line();
  QConfig config = QConfig::int8();
  config.output_bits = 8;
  config.model.activation.observer = MinMaxOptions{};
  prepare_and_calibrate(net, unit_values(), config);
  return diagnose(net, unit_values());
}

}  // namespace

TEST_CASE("a diagnosis measures what one layer does to its values", "[quant][doctor]") {
  const Diagnosis d = diagnosis_of_line();
  CHECK(d.samples == 256);
  CHECK(d.integers_different == 0);
  REQUIRE(d.layers.size() == 2);
  CHECK(d.layers[0].name == "input");
  CHECK(d.layers[0].is_input);
  CHECK(d.layers[0].codes_used == 256);
  CHECK(d.layers[0].saturated() == 0.0);
  CHECK(d.layers[0].snr_alone > 120.0);  // codes and floats differ by the rounding of float32

  const LayerDiagnosis& layer = d.layer("0");
  CHECK(layer.slot == "0");
  CHECK(layer.operation == "linear");
  CHECK(layer.is_output);
  CHECK(layer.reads == std::vector<int>{0});
  CHECK(layer.floats.values == 256);
  CHECK(layer.floats.range == Range{1.0f, 3.0f});
  // 0.5 % on each side: one of 256 values.
  CHECK(layer.floats.central.min == Approx(1.0 + 2.0 / 255.0).margin(0.002));
  CHECK(layer.floats.central.max == Approx(3.0 - 2.0 / 255.0).margin(0.002));
  // The range is [0, 3], the step 3 / 255, and the values take 2/3 of the codes.
  CHECK(layer.codes == 256);
  CHECK(layer.codes_used == 171);
  CHECK(layer.codes_range == Approx(171.0));
  // Values (255 + 2 i) / 255 on multiples of 3 / 255: errors 0, 1/255, -1/255 in turn.
  const double rmse = std::sqrt(2.0 / 3.0) / 255.0;
  CHECK(layer.rmse == Approx(rmse).epsilon(0.01));
  CHECK(layer.max_error == Approx(1.0 / 255.0).epsilon(0.01));
  const double spread = std::sqrt((256.0 * 256.0 - 1.0) / 12.0) * 2.0 / 255.0;
  CHECK(layer.relative == Approx(rmse / spread).epsilon(0.01));
  const double signal = 4.0 + spread * spread;
  CHECK(layer.snr_accumulated == Approx(10.0 * std::log10(signal / (rmse * rmse))).epsilon(0.01));
  CHECK(layer.constant == 0);
  REQUIRE(layer.weights);
  CHECK(layer.weights->snr > 120.0);  // 2 = 127 * (2 / 127), rounded to float32
  CHECK(layer.weights->median_codes == Approx(255.0));
  CHECK(layer.weights->scale_to_weights == Approx(1.0));
  // 1 / (2 / 127 / 255) = 16192.5, a tie: half a unit is lost.
  const double unit = 2.0 / 127.0 / 255.0;
  CHECK(layer.weights->bias_error == Approx(0.5 * unit).epsilon(0.01));
  REQUIRE(layer.accumulators);
  CHECK(layer.accumulators->largest == Approx(16192 + 127 * 255).margin(1.0));
  CHECK(layer.accumulators->bound >= layer.accumulators->largest);
  CHECK(layer.accumulators->headroom_bits == Approx(31.0 - std::log2(16192.0 + 127.0 * 255.0)));

  // Relative to the interquartile range 1 / 1.349. An input value moves by up to half of 1 / 255,
  // uniformly, and y by twice that.
  CHECK(layer.output_error == Approx(1.349 * rmse).epsilon(0.1));
  CHECK(d.layers[0].output_error == Approx(1.349 * 2.0 / 255.0 / std::sqrt(12.0)).epsilon(0.15));

  REQUIRE(d.outputs.size() == 1);
  CHECK(d.outputs[0].name == "output");
  CHECK(d.outputs[0].rmse == layer.rmse);
  CHECK(d.outputs[0].spread == Approx(spread));
  CHECK(*d.outputs[0].target_rmse_float == Approx(0.5));
  CHECK(*d.outputs[0].target_rmse_integers == Approx(0.5).epsilon(0.01));
  CHECK_FALSE(d.classes);
  CHECK(d.findings.empty());
}

TEST_CASE("a diagnosis covers batch norms, pools, branches and accumulators", "[quant][doctor]") {
  const bool branches = GENERATE(false, true);
  Sequential net = branches ? test::branched_net() : test::conv_net();
  const int64_t n = 40;
  std::vector<uint8_t> bytes(static_cast<size_t>(n * 64));
  Random random(1);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < n; ++i) labels.push_back(i % 4);
  const DataLoader data{Dataset({n, 8, 8, 1}, bytes, labels, 4), {.batch = 16}};
  test::train_a_little(net, {16, 8, 8, 1}, 3);
  prepare_and_calibrate(net, data, QConfig::int8());
  const Diagnosis d = diagnose(net, data, {.worst = 2});
  CHECK(d.integers_different == 0);
  CHECK(d.layers.size() == convert(net, (*data.begin()).input).program().values.size());
  double shares = 0.0;
  for (const LayerDiagnosis& layer : d.layers) {
    INFO(layer.name << ' ' << layer.operation);
    CHECK(layer.floats.values > 0);  // it was found in the float pass
    shares += layer.noise_share;
    if (!layer.is_input) CHECK(layer.snr_accumulated > 15.0);
    if (!layer.weights) continue;
    CHECK(layer.weights->snr > 30.0);
    CHECK(layer.snr_alone > layer.snr_accumulated - 1.0);
    CHECK(layer.accumulators->largest > 0);
    CHECK(layer.accumulators->largest <= layer.accumulators->bound);
  }
  CHECK(shares == Approx(1.0));
  REQUIRE(d.classes);
  CHECK(d.classes->floats.total() == n);
  for (int64_t label = 0; label < 4; ++label) {
    for (int64_t predicted = 0; predicted < 4; ++predicted) {
      CHECK(d.classes->simulated.count(label, predicted) ==
            d.classes->integers.count(label, predicted));
    }
  }
  REQUIRE(d.worst.size() == 2);
  CHECK(d.worst[0].error >= d.worst[1].error);
  CHECK(d.worst[0].shape == Shape{8, 8, 1});
  CHECK(d.worst[0].input.size() == 64);
  CHECK(*d.worst[0].label == static_cast<int32_t>(d.worst[0].index % 4));
  CHECK(d.outputs.size() == 4);
}

TEST_CASE("a diagnosis does not depend on the batch size, and leaves the network as it was",
          "[quant][doctor]") {
  const std::vector<float> x = normals(4 * 70, 1);
  Sequential net = two_layers(4, 6, 2);
  const DataLoader data = coded(4, x, {-4.0f, 4.0f});
  prepare_and_calibrate(net, data, QConfig::int8());
  net.train();
  const std::string first = diagnose(net, data).to_json();
  CHECK(net.training());
  CHECK(diagnose(net, data).to_json() == first);
  const DataLoader large{
      TensorDataset(SampleArray::encoded({70, 4}, x, {-4.0f, 4.0f}, {}, Outside::kSaturate),
                    std::monostate{}),
      {.batch = 70}};
  const Diagnosis a = diagnose(net, data);
  const Diagnosis b = diagnose(net, large);
  for (size_t i = 0; i < a.layers.size(); ++i) {
    CHECK(a.layers[i].rmse == Approx(b.layers[i].rmse));
    CHECK(a.layers[i].codes_used == b.layers[i].codes_used);
    CHECK(a.layers[i].floats.counts == b.layers[i].floats.counts);
  }
  CHECK(diagnose(net, data, {.samples = 10}).samples == 10);
}

TEST_CASE("diagnose refuses what it cannot measure", "[quant][doctor]") {
  Sequential net = two_layers(4, 6, 2);
  const DataLoader data = coded(4, normals(4 * 40, 1), {-4.0f, 4.0f});
  QUANTRAIN_CHECK_ERROR(diagnose(net, data), GraphError, "not prepared");
  prepare_ptq(net, (*data.begin()).input, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(diagnose(net, data), QuantError, "not calibrated");
  calibrate(net, data);
  QUANTRAIN_CHECK_ERROR(diagnose(net, data, {.samples = 0}), DataError, "must be positive");
  const DataLoader narrow = coded(3, normals(3 * 40, 1), {-4.0f, 4.0f});
  QUANTRAIN_CHECK_ERROR(diagnose(net, narrow), ShapeError, "");
  test::values_of(net, "2.bias")[1] = std::numeric_limits<float>::quiet_NaN();
  QUANTRAIN_CHECK_ERROR(diagnose(net, data), DataError, "");
  const Diagnosis none;
  QUANTRAIN_CHECK_ERROR(none.layer("7"), GraphError, "no layer \"7\"");
}

TEST_CASE("a diagnosis prints a table and JSON", "[quant][doctor]") {
  const Diagnosis d = diagnosis_of_line();
  std::ostringstream text;
  text << d;
  CHECK(text.str().rfind("no finding\n\n256 samples; 0 integers", 0) == 0);
  CHECK(text.str().find("171 of 256") != std::string::npos);
  const auto json = nlohmann::json::parse(d.to_json());
  CHECK(json["samples"] == 256);
  CHECK(json["layers"][1]["name"] == "0");
  CHECK(json["layers"][1]["codes_used"] == 171);
  CHECK(json["layers"][1]["weights"]["bits"] == 8);
  CHECK(json["outputs"][0]["target_rmse_float"].get<double>() == Approx(0.5));
  CHECK(json["findings"].empty());
  CHECK(json["worst"].size() == 4);
}

TEST_CASE("a diagnosis writes a page that needs nothing else", "[quant][doctor]") {
  Sequential net = test::conv_net();
  std::vector<uint8_t> bytes(24 * 64);
  Random random(1);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  std::vector<int32_t> labels(24);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 4);
  const DataLoader data{Dataset({24, 8, 8, 1}, bytes, labels, 4), {.batch = 8}};
  prepare_and_calibrate(net, data, QConfig::int8());
  const std::string page = diagnose(net, data).to_html("a < b");
  CHECK(page.rfind("<!doctype html>", 0) == 0);
  CHECK(page.find("<h1>a &lt; b</h1>") != std::string::npos);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("http") == std::string::npos);
  CHECK(page.find("before: float") != std::string::npos);
  // The signature of a PNG and its header, 8 by 8 gray pixels.
  CHECK(page.find("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFX") !=
        std::string::npos);
  CHECK(page.size() < 40000);

  Sequential other = two_layers(4, 6, 2);
  const DataLoader rows = coded(4, normals(4 * 40, 1), {-4.0f, 4.0f});
  prepare_and_calibrate(other, rows, QConfig::int8());
  const Diagnosis d = diagnose(other, rows);
  CHECK(d.to_html().find("<polyline") != std::string::npos);
  CHECK(d.to_html().find("Classes") == std::string::npos);
  REQUIRE(d.noisiest() != nullptr);
  for (const LayerDiagnosis& layer : d.layers)
    CHECK(layer.snr_accumulated >= d.noisiest()->snr_accumulated);
  CHECK(d.most_saturated() == nullptr);
}

TEST_CASE("parity and ranges carry the largest saturated share and the lowest signal-to-noise",
          "[quant][doctor]") {
  Sequential net = two_layers(4, 6, 2);
  QConfig config = QConfig::int8();
  config.layers["0"] = config.model;
  config.layers["0"].activation.observer = PercentileOptions{.high = 98.0};
  const DataLoader data = coded(4, normals(4 * 32, 1), {-4.0f, 4.0f});
  prepare_and_calibrate(net, data, config);
  const Diagnosis d = diagnose(net, data);
  const Parity parity = verify_parity(net, convert(net, (*data.begin()).input), data);
  REQUIRE(parity.most_saturated() != nullptr);
  CHECK(parity.most_saturated()->name == "0");
  CHECK(d.most_saturated()->name == "0");
  // 32 samples of 6 channels: percentile 98 leaves 192 - 189 values outside.
  CHECK(parity.most_saturated()->saturated_share() == Approx(3.0 / 192.0));
  CHECK(d.most_saturated()->saturated() == Approx(3.0 / 192.0));
  REQUIRE(parity.noisiest() != nullptr);
  CHECK(parity.noisiest()->name == d.noisiest()->name);
  CHECK(parity.noisiest()->signal_to_noise() == Approx(d.noisiest()->snr_accumulated));
  std::ostringstream text;
  text << parity;
  CHECK(text.str().find(
            "against float, 32 samples: at most 1.56 % of a layer's values saturate (\"0\"), "
            "signal-to-noise is at least ") != std::string::npos);

  const Ranges measured = ranges(net, d);
  const auto slot = [&](const std::string& name) {
    return *std::find_if(measured.slots.begin(), measured.slots.end(), [&](const SlotRange& s) {
      return s.name == name;
    });
  };
  CHECK(*slot("1.output_slot").saturated == Approx(3.0 / 192.0));
  CHECK(*slot("0.weight_slot").signal_to_noise == d.layer("0").weights->snr);
  CHECK(*slot("input_slot").saturated == 0.0);
  std::ostringstream table;
  table << measured;
  CHECK(table.str().find("phase   saturated") != std::string::npos);
  CHECK(table.str().find("1.56 %") != std::string::npos);
}

TEST_CASE("a diagnosis and parity take samples from all parts of the data", "[quant][doctor]") {
  // Large values only in the second half, in a periodic order.
  std::vector<float> x;
  for (int i = 0; i < 4000; ++i)
    x.push_back((i < 2000 ? 0.1f : 1.0f) * (i % 2 == 0 ? 1.0f : -1.0f));
  std::vector<int32_t> labels;
  for (int i = 0; i < 4000; ++i) labels.push_back(i % 2);
  const DataLoader data{Dataset::from_floats({4000, 1}, x, labels, 2, {-1.0f, 1.0f}),
                        {.batch = 50}};
  Sequential net{Linear{1, 2}};
  test::fill(net, "0.weight", 1, 1.0f);
  test::fill(net, "0.bias", 2, 0.0f);
  prepare_and_calibrate(net, data, QConfig::int8());
  const Diagnosis d = diagnose(net, data, {.samples = 200});
  CHECK(d.samples == 200);
  CHECK(d.layer("input").floats.rms == Approx(std::sqrt(0.505)).epsilon(0.01));
  const auto of_class = [&](int64_t label) {
    return d.classes->floats.count(label, 0) + d.classes->floats.count(label, 1);
  };
  CHECK(of_class(0) > 60);
  CHECK(of_class(1) > 60);
  for (const SampleDiagnosis& sample : d.worst) {  // the index is that in the data
    REQUIRE(sample.input.size() == 1);
    CHECK(sample.input[0] == Approx(x[static_cast<size_t>(sample.index)]).margin(0.01));
    CHECK(*sample.label == labels[static_cast<size_t>(sample.index)]);
  }
  CHECK(diagnose(net, data, {.samples = 200}).to_json() ==
        diagnose(net, data, {.samples = 200}).to_json());

  const IntegerModel model = convert(net, (*data.begin()).input);
  const Parity parity = verify_parity(net, model, data);
  CHECK(parity.images == 4000);
  CHECK(parity.measured == 256);
  CHECK(std::sqrt(parity.layers[0].signal / 256.0) == Approx(std::sqrt(0.505)).epsilon(0.01));
  // A container is spread, too, and a single batch.
  std::vector<Batch> batches;
  for (const Batch& batch : data) batches.push_back(batch);
  CHECK(verify_parity(net, model, batches).layers[0].signal == parity.layers[0].signal);
  const Tensor all =
      Dataset::from_floats({4000, 1}, x, labels, 2, {-1.0f, 1.0f}).batch(0, 4000).input;
  CHECK(verify_parity(net, model, all).layers[0].signal == parity.layers[0].signal);
}

TEST_CASE("parity names the output channel with the lowest signal-to-noise", "[quant][doctor]") {
  Sequential net{Linear{4, 2}};
  test::fill(net, "0.weight", 1, 1.0f);
  test::fill(net, "0.bias", 2, 0.0f);
  for (int i = 0; i < 4; ++i) test::values_of(net, "0.weight")[i] *= 1000.0f;
  QConfig config = QConfig::int8();
  config.output_bits = 8;
  const DataLoader data = coded(4, normals(4 * 64, 1), {-4.0f, 4.0f});
  prepare_and_calibrate(net, data, config);
  const Parity parity = verify_parity(net, convert(net, (*data.begin()).input), data);
  const LayerParity* const output = parity.noisiest_output();
  REQUIRE(output != nullptr);
  REQUIRE(output->channels.size() == 2);
  CHECK(output->signal_to_noise() > 35.0);  // the large channel hides the small one
  CHECK(output->worst_channel() == 1);
  CHECK(output->channels[1].signal_to_noise() < 3.0);
  CHECK(output->channels[0].signal + output->channels[1].signal == Approx(output->signal));
  CHECK(output->channels[0].noise + output->channels[1].noise == Approx(output->noise));
  std::ostringstream text;
  text << parity;
  CHECK(text.str().find("dB (channel 1 of \"0\")") != std::string::npos);
}

}  // namespace quantrain::quant
