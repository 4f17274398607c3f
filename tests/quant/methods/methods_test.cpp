// Each method alone against numbers from elsewhere: PyTorch's, an exhaustive search, the float
// network itself.
#include <algorithm>
#include <cmath>

#include "framework/autograd/ops.hpp"
#include "layers/evaluate.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/adaround.hpp"
#include "quant/methods/bias_correction.hpp"
#include "quant/methods/equalization.hpp"
#include "quant/methods/rescale.hpp"
#include "quant/methods/weight_ranges.hpp"
#include "tests/quant/sick_networks.hpp"
#include "tests/tensors.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using quantrain::test::check_close;
using quantrain::test::Json;
using quantrain::test::load_vectors;
using quantrain::test::to_tensor;
using test::coded;
using test::fill;
using test::normals;
using test::prepare_and_calibrate;
using test::values_of;

// One float32 division and a square root.
constexpr quantrain::test::Tolerance kOneDivision{0.0, 1e-6};

std::vector<float> list_of(const Json& json) { return json.at("values").get<std::vector<float>>(); }

DataLoader normal_rows(int64_t features, int64_t n = 64) {
  return coded(features, normals(n * features, 5), {-4.0f, 4.0f});
}

/// Images [8, 8, 1].
DataLoader image_data(int64_t n = 48) {
  std::vector<float> x(static_cast<size_t>(n * 64));
  Random random(3);
  for (float& value : x) value = random.uniform();
  return DataLoader{
      TensorDataset(SampleArray::encoded({n, 8, 8, 1}, x, {0.0f, 1.0f}, {}), std::monostate{}),
      {.batch = 16}};
}

/// Convolution, depthwise, 1 x 1 convolution, linear, with channels of very different size.
Sequential uneven() {
  Sequential net{Conv2d{1, 4, {.kernel = 3, .padding = 1, .bias = false}},
                 BatchNorm2d{4},
                 ReLU{},
                 Conv2d{4, 8, {.kernel = 3, .padding = 1, .groups = 4}},
                 ReLU{},
                 MaxPool2d{2},
                 Conv2d{8, 6, {.kernel = 1}},
                 Flatten{},
                 Linear{96, 3}};
  for (const char* path : {"0.weight", "3.weight", "6.weight", "8.weight"})
    fill(net, path, 7, 0.3f);
  fill(net, "3.bias", 8, 0.1f);
  fill(net, "6.bias", 9, 0.1f);
  for (int64_t c = 0; c < 4; ++c) {
    values_of(net, "1.weight")[c] = std::exp2(static_cast<float>(2 * c - 3));
    values_of(net, "1.bias")[c] = 0.125f * static_cast<float>(c);
  }
  net.eval();
  return net;
}

Tensor float_outputs(Module& net, const DataLoader& data) {
  const FloatMode mode(net);
  return predict(net, data);
}

/// A convolution's flattened value and another one's, concatenated, for a Linear.
class FlattenedBranches : public Module {
 public:
  FlattenedBranches()
      : a_(add("a", Conv2d{1, 4, {.kernel = 3}})),
        relu_(add("relu", ReLU{})),
        flat_a_(add("flat_a", Flatten{})),
        b_(add("b", Conv2d{1, 3, {.kernel = 3}})),
        flat_b_(add("flat_b", Flatten{})),
        concat_(add("concat", Concat{})),
        linear_(add("linear", Linear{36 * 7, 5})) {}
  std::string_view type() const override { return "FlattenedBranches"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor a = (*flat_a_)((*relu_)((*a_)(x)));
    return (*linear_)((*concat_)(a, (*flat_b_)((*b_)(x))));
  }

 private:
  std::shared_ptr<Conv2d> a_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Flatten> flat_a_;
  std::shared_ptr<Conv2d> b_;
  std::shared_ptr<Flatten> flat_b_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<Linear> linear_;
};

const MethodRow& row_of(const Improvement& made, const std::string& layer) {
  for (const MethodRow& row : made.rows) {
    if (row.layer == layer) return row;
  }
  FAIL("no row of " << layer);
  return made.rows[0];
}

/// Largest |w| that makes each channel, and that reads it, of two layers of an ungrouped network.
std::vector<float> made_by(const float* w, int64_t channels, int64_t inner) {
  std::vector<float> largest(static_cast<size_t>(channels), 0.0f);
  for (int64_t i = 0; i < channels * inner; ++i) {
    float& most = largest[static_cast<size_t>(i / inner)];
    most = std::max(most, std::abs(w[i]));
  }
  return largest;
}

/// Checks that the means that the methods before left are those of the float network.
struct CheckMeans {
  static constexpr std::string_view kName = "check_means";
  void apply(MethodRun& run) const {
    const std::vector<Product> products = products_of(run.net, (*run.data.begin()).inputs());
    for (const auto& [path, means] : channel_means(run.net, run.data, products, float_pass)) {
      CAPTURE(path);
      for (size_t c = 0; c < means.size(); ++c)
        CHECK(run.float_means.at(path)[c] == Approx(means[c]).epsilon(1e-4).margin(1e-5));
    }
  }
};

}  // namespace

TEST_CASE("equalizing factors equal those of the paper's formula", "[quant][methods][vectors]") {
  const Json json = load_vectors("equalization", "methods.json");
  const std::vector<float> s = equalizing_factors(list_of(json.at("r1")), list_of(json.at("r2")));
  check_close(Tensor::from({5}, s), json.at("s"), kOneDivision);
  const std::vector<float> none = equalizing_factors(std::vector<float>{0.0f, 2.0f, 1e-38f},
                                                     std::vector<float>{1.0f, 0.0f, 1e38f});
  CHECK(none == std::vector<float>{1.0f, 1.0f, 1.0f});
}

TEST_CASE("one round of equalization divides the maker and multiplies the reader by the factors",
          "[quant][methods][vectors]") {
  const Json json = load_vectors("equalization", "methods.json");
  Sequential net{Conv2d{2, 5, {.kernel = 3, .bias = false}},
                 ReLU{},
                 Conv2d{5, 4, {.kernel = 3, .bias = false}},
                 Flatten{}};
  const std::vector<float> first = list_of(json.at("first"));
  const std::vector<float> second = list_of(json.at("second"));
  std::copy(first.begin(), first.end(), values_of(net, "0.weight"));
  std::copy(second.begin(), second.end(), values_of(net, "2.weight"));
  const DataLoader data{TensorDataset(
      SampleArray::encoded({4, 5, 5, 2}, normals(200, 1), {-4.0f, 4.0f}, {}), std::monostate{})};
  prepare_and_calibrate(net, data, QConfig::int8());
  const Improvement made = improve(net, data, {Equalization{.rounds = 1}});
  const std::vector<float> s = list_of(json.at("s"));
  for (size_t i = 0; i < first.size(); ++i)
    CHECK(values_of(net, "0.weight")[i] == Approx(first[i] / s[i / 18]).epsilon(1e-6));
  for (size_t i = 0; i < second.size(); ++i)
    CHECK(values_of(net, "2.weight")[i] == Approx(second[i] * s[i % 5]).epsilon(1e-6));
  float largest = 1.0f;
  for (const float factor : s) largest = std::max({largest, factor, 1.0f / factor});
  CHECK(row_of(made, "0").before == Approx(largest).epsilon(1e-6));
}

TEST_CASE("equalization changes no float result, with batch norm, groups, pools and a flattening",
          "[quant][methods]") {
  Sequential net = uneven();
  const DataLoader data = image_data();
  prepare_and_calibrate(net, data, QConfig::int8());
  const Tensor before = float_outputs(net, data);
  const Improvement made = improve(net, data, {Equalization{.rounds = 40}, CheckMeans{}});
  const Tensor after = float_outputs(net, data);
  for (int64_t i = 0; i < before.elements(); ++i)
    CHECK(after.data()[i] == Approx(before.data()[i]).epsilon(1e-4).margin(1e-4));
  CHECK(row_of(made, "0").before > 2.0);  // there was something to equalize
  for (const char* layer : {"0", "3", "6"}) CHECK(row_of(made, layer).after < 1.01);
  // The last pair, 6 -> flatten -> 8: makers and readers have equal ranges in each channel.
  const std::vector<float> r1 = made_by(values_of(net, "6.weight"), 6, 8);
  std::vector<float> r2(6, 0.0f);
  for (size_t i = 0; i < 3 * 96; ++i)
    r2[i % 6] = std::max(r2[i % 6], std::abs(values_of(net, "8.weight")[i]));
  for (size_t c = 0; c < 6; ++c) CHECK(r1[c] == Approx(r2[c]).epsilon(0.01));
}

TEST_CASE("equalization improves 4 bits of a network with uneven channels", "[quant][methods]") {
  const DataLoader data = image_data();
  QConfig config = QConfig::bits(4, 8);
  config.model.weight.per_channel = false;
  const auto error = [&](bool equalized) {
    Sequential net = uneven();
    prepare_and_calibrate(net, data, config);
    const Tensor floats = float_outputs(net, data);
    if (equalized) improve(net, data, {Equalization{}});
    return mean_squared_error(predict(net, data), floats);
  };
  const double before = error(false);
  const double after = error(true);
  INFO(before << " -> " << after);
  CHECK(after < 0.5 * before);
}

TEST_CASE("equalization leaves what it cannot change, and says why", "[quant][methods]") {
  const DataLoader data = image_data();
  Sequential net{Conv2d{1, 4, {.kernel = 3, .stride = 2, .padding = 1}},
                 ReLU{},
                 test::Branches{4},
                 AvgPool2d{2},
                 Conv2d{8, 6, {.kernel = 1}},
                 ReLU6{},
                 GlobalAvgPool2d{},
                 Flatten{},
                 Linear{6, 4}};
  net.eval();
  prepare_and_calibrate(net, data, QConfig::int8());
  const Improvement made = improve(net, data, {Equalization{}});
  const auto says = [&](const char* layer, const char* part) {
    CAPTURE(layer, row_of(made, layer).skipped);
    CHECK(row_of(made, layer).skipped.find(part) != std::string::npos);
  };
  says("0", "reads the value by \"add\"");
  says("2.conv2", "reads the value by \"");
  says("4", "a factor does not pass ReLU6");
  says("8", "is an output of the network");
  CHECK(row_of(made, "2.conv1").skipped.empty());

  WeightQuantizer& slot = weight_quantizer(net, "8");
  slot.set_params(slot.params());
  CHECK(row_of(improve(net, data, {Equalization{}}), "2.conv1").skipped.find("given") !=
        std::string::npos);
}

TEST_CASE("equalization leaves values whose channels a reshape or a concatenation moves",
          "[quant][methods]") {
  const DataLoader data = image_data();
  const auto check = [&](Module& net, const char* layer, const char* text) {
    net.eval();
    prepare_and_calibrate(net, data, QConfig::int8());
    const Tensor before = float_outputs(net, data);
    const Improvement made = improve(net, data, {Equalization{}});
    const Tensor after = float_outputs(net, data);
    for (int64_t i = 0; i < before.elements(); ++i)
      CHECK(after.data()[i] == Approx(before.data()[i]).epsilon(1e-4).margin(1e-4));
    CHECK(row_of(made, layer).skipped.find(text) != std::string::npos);
  };
  FlattenedBranches branches;
  fill(branches, "a.weight", 7, 0.3f);
  check(branches, "a", "after a flattening");
  // The convolution's 3 channels are not 12 channels in 4 groups.
  Sequential reshaped{Flatten{},
                      Linear{64, 12},
                      ReLU{},
                      Reshape{{2, 2, 3}},
                      Conv2d{3, 4, {.kernel = 1}},
                      Flatten{},
                      Linear{16, 3}};
  fill(reshaped, "1.weight", 7, 0.3f);
  check(reshaped, "1", "moves its channels");
}

TEST_CASE("means of clipped normal variables equal integrals", "[quant][methods][vectors]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Json& json : load_vectors("clipped", "methods.json")) {
    const auto limit = [&](const char* name, double none) {
      return json.at(name).is_null() ? none : json.at(name).get<double>();
    };
    CHECK(clipped_normal_mean(json.at("mean").get<double>(),
                              json.at("deviation").get<double>(),
                              limit("low", -kInfinity),
                              limit("high", kInfinity)) ==
          Approx(json.at("result").get<double>()).margin(1e-8));
  }
  CHECK(clipped_normal_mean(7.0, 0.0, 0.0, 6.0) == 6.0);
}

TEST_CASE("bias correction from batch norms moves the bias by PyTorch's (w_q - w) E[x]",
          "[quant][methods][vectors]") {
  const Json json = load_vectors("correction", "methods.json");
  Sequential net{Linear{2, 6}, BatchNorm1d{6}, ReLU{}, Linear{6, 3}};
  const auto set = [&](const char* path, const char* name) {
    const std::vector<float> from = list_of(json.at(name));
    std::copy(from.begin(), from.end(), values_of(net, path));
  };
  set("1.weight", "gamma");
  set("1.bias", "beta");
  set("3.weight", "weight");
  std::fill_n(values_of(net, "3.bias"), 3, 0.5f);
  net.eval();
  const DataLoader data = normal_rows(2);
  prepare_and_calibrate(net, data, QConfig::bits(3, 8));
  const Improvement made =
      improve(net, data, {BiasCorrection{.from = BiasCorrection::From::kBatchNorms}});
  const std::vector<float> moved = list_of(json.at("moved"));
  for (size_t o = 0; o < 3; ++o)
    CHECK(values_of(net, "3.bias")[o] == Approx(0.5f - moved[o]).margin(1e-6));
  CHECK(row_of(made, "0").skipped.find("kData") != std::string::npos);
}

TEST_CASE("bias correction from data makes the means of all outputs those of the float network",
          "[quant][methods]") {
  Sequential net = uneven();
  const DataLoader data = image_data();
  prepare_and_calibrate(net, data, QConfig::bits(3, 4));
  const auto means = [](const Tensor& y) {
    std::vector<double> sums(static_cast<size_t>(y.dim(1)), 0.0);
    for (int64_t i = 0; i < y.elements(); ++i)
      sums[static_cast<size_t>(i) % sums.size()] +=
          static_cast<double>(y.data()[i]) / static_cast<double>(y.dim(0));
    return sums;
  };
  const std::vector<double> floats = means(float_outputs(net, data));
  const std::vector<double> before = means(predict(net, data));
  const Improvement made = improve(net, data, {BiasCorrection{}});
  const std::vector<double> after = means(predict(net, data));
  double was = 0.0;
  double is = 0.0;
  for (size_t c = 0; c < floats.size(); ++c) {
    was = std::max(was, std::abs(before[c] - floats[c]));
    is = std::max(is, std::abs(after[c] - floats[c]));
  }
  // The bias is an integer, in units of the sums' scales.
  const integer::Program program = convert(net, (*data.begin()).input).program();
  const std::vector<double>& scale = program.value(program.outputs[0]).scale;
  const double half_step = 0.5 * *std::max_element(scale.begin(), scale.end());
  INFO(was << " -> " << is << ", half a step " << half_step);
  CHECK(was > 4.0 * half_step);
  CHECK(is <= 1.01 * half_step);
  CHECK(row_of(made, "8").after < 0.1 * row_of(made, "8").before);
}

TEST_CASE("a layer without bias and batch norm cannot be corrected", "[quant][methods]") {
  Sequential net{Linear{4, 3, {.bias = false}}};
  const DataLoader data = normal_rows(4);
  prepare_and_calibrate(net, data, QConfig::int4());
  CHECK(row_of(improve(net, data, {BiasCorrection{}}), "0").skipped.find(".bias = true") !=
        std::string::npos);
}

TEST_CASE("AdaRound finds nearly the best of all roundings of a small layer", "[quant][methods]") {
  constexpr size_t kIn = 6;
  constexpr size_t kOut = 3;
  Sequential net{Linear{kIn, kOut}};
  fill(net, "0.weight", 11, 0.5f);
  std::fill_n(values_of(net, "0.bias"), kOut, 0.0f);
  // Inputs that go together: errors of opposite sign cancel, which rounding to nearest ignores.
  std::vector<float> inputs = normals(256 * kIn, 5);
  const std::vector<float> common = normals(256, 6);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = 0.6f * inputs[i] + common[i / kIn];
  const DataLoader data = coded(kIn, inputs, {-4.0f, 4.0f});
  prepare_and_calibrate(net, data, QConfig::bits(3, 8));
  const QParams params = weight_quantizer(net, "0").params();
  std::vector<float> x;
  for (const Batch& batch : data) {
    const Floats values = batch.input.floats();
    x.insert(x.end(), values.data(), values.data() + values.size());
  }
  // The squared error of each output depends on its own weights only.
  const std::vector<float> w(values_of(net, "0.weight"), values_of(net, "0.weight") + kIn * kOut);
  const auto error = [&](size_t o, const std::vector<double>& candidate) {
    double sum = 0.0;
    for (size_t row = 0; row < x.size() / kIn; ++row) {
      double difference = 0.0;
      for (size_t i = 0; i < kIn; ++i)
        difference += (candidate[i] - static_cast<double>(w[o * kIn + i])) *
                      static_cast<double>(x[row * kIn + i]);
      sum += difference * difference;
    }
    return sum;
  };
  double best = 0.0;
  double nearest = 0.0;
  for (size_t o = 0; o < kOut; ++o) {
    const double s = static_cast<double>(params.scale[o]);
    double least = std::numeric_limits<double>::infinity();
    for (unsigned up = 0; up < (1u << kIn); ++up) {
      std::vector<double> candidate;
      for (size_t i = 0; i < kIn; ++i)
        candidate.push_back(
            s * std::clamp(std::floor(static_cast<double>(w[o * kIn + i]) / s) + (up >> i & 1u),
                           -3.0,
                           3.0));
      least = std::min(least, error(o, candidate));
    }
    std::vector<double> rounded;
    for (size_t i = 0; i < kIn; ++i)
      rounded.push_back(s * std::nearbyint(static_cast<double>(w[o * kIn + i]) / s));
    nearest += error(o, rounded);
    best += least;
  }
  const double count = static_cast<double>(x.size() / kIn * kOut);
  REQUIRE(best < 0.9 * nearest);  // else the test shows nothing
  const Improvement made =
      improve(net, data, {AdaRound{.iterations = 1000, .regularization = 0.03f}});
  const MethodRow& row = made.rows.at(0);
  CHECK(row.before == Approx(std::sqrt(nearest / count)).epsilon(1e-4));
  INFO(row.before << " -> " << row.after << ", best " << std::sqrt(best / count));
  CHECK(row.after < 1.05 * std::sqrt(best / count));

  // Each weight is the code below or above, times the scale that it had.
  CHECK(weight_quantizer(net, "0").params() == params);
  for (size_t i = 0; i < w.size(); ++i) {
    const float s = params.scale[i / kIn];
    const float code = values_of(net, "0.weight")[i] / s;
    CHECK(code == Approx(std::nearbyint(code)).margin(1e-5));
    CHECK(std::abs(code - w[i] / s) < 1.0f);
  }
}

TEST_CASE("weight ranges have the least squared error of all candidates", "[quant][methods]") {
  Sequential net = test::two_layers(12, 9, 4);
  const DataLoader data = normal_rows(12);
  prepare_and_calibrate(net, data, QConfig::bits(3, 8));
  const std::vector<float> w(values_of(net, "0.weight"), values_of(net, "0.weight") + 9 * 12);
  const QParams whole = weight_quantizer(net, "0").params();
  improve(net, data, {WeightRanges{}});
  CHECK(weight_quantizer(net, "0").is_given());
  const QParams chosen = weight_quantizer(net, "0").params();
  const auto error = [&](size_t o, double s) {
    double sum = 0.0;
    for (size_t i = o * 12; i < (o + 1) * 12; ++i) {
      const double value = static_cast<double>(w[i]);
      const double is = s * std::clamp(std::nearbyint(value / s), -3.0, 3.0);
      sum += (value - is) * (value - is);
    }
    return sum;
  };
  int clipped = 0;
  for (size_t o = 0; o < 9; ++o) {
    double least = std::numeric_limits<double>::infinity();
    for (int k = 30; k <= 100; ++k)
      least = std::min(least, error(o, 0.01 * k * static_cast<double>(whole.scale[o])));
    CHECK(error(o, static_cast<double>(chosen.scale[o])) <= least * (1.0 + 1e-4) + 1e-9);
    clipped += chosen.scale[o] < whole.scale[o] ? 1 : 0;
  }
  CHECK(clipped > 0);
}

}  // namespace quantrain::quant
