#include "quant/prepare/weight_quantizer.hpp"

#include <bit>
#include <cmath>
#include <thread>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/random.hpp"
#include "layers/state.hpp"
#include "layers/summary.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {

using test::check_parity;
using test::random_images;
using test::random_normal;

namespace {

void fill(Module& layer, const std::vector<float>& weight, const std::vector<float>& bias) {
  std::vector<NamedState> own = layer.named_parameters();
  std::copy(weight.begin(), weight.end(), own[0].tensor.mutable_data());
  std::copy(bias.begin(), bias.end(), own[1].tensor.mutable_data());
}

/// The scales of a layer's weights in the deployed network.
std::vector<float> weight_scales(Module& net, const Tensor& example, std::string_view layer) {
  const DeployedMode deployed(net);
  const Graph graph = record_graph(net, example);
  for (const GraphNode& node : graph.nodes()) {
    if (node.scope() == layer && node.node->traits().weight == 1)
      return node.inputs[1].codes()->params.scale;
  }
  return {};
}

std::vector<int32_t> biases(const IntegerModel& model, size_t step) {
  const integer::QuantizedProduct& p = *integer::product(model.program().steps[step].operation);
  return {p.bias.begin(), p.bias.end()};
}

/// A pass in training, whose gradients must be finite.
void train_once(Module& net, const Tensor& images) {
  net.train();
  net.zero_grad();
  sum(net(images)).backward();
  for (const NamedState& parameter : net.named_parameters()) {
    INFO(parameter.name);
    REQUIRE(parameter.tensor.grad().defined());
    bool finite = true;
    for (int64_t i = 0; i < parameter.tensor.elements(); ++i)
      finite = finite && std::isfinite(parameter.tensor.grad().data()[i]);
    CHECK(finite);
  }
}

}  // namespace

TEST_CASE("in LSQ's gradient of a learned weight scale, n counts all weights that share the scale",
          "[quant][weights]") {
  constexpr int64_t kOut = 16;
  constexpr int64_t kIn = 8;
  const bool per_channel = GENERATE(false, true);
  CAPTURE(per_channel);
  Tensor w = random_normal({kOut, kIn}, 1);
  WeightQuantizer quantizer(
      {.per_channel = per_channel, .estimator = Estimator::kLearned}, {w, {}}, nullptr);
  const Tensor scale = quantizer.parameters()[0];
  sum(quantizer.apply({w, {}}, Tensor::zeros({1, kIn})).weight).backward();
  const int64_t sharing = kOut * kIn / scale.elements();
  for (int64_t c = 0; c < scale.elements(); ++c) {
    double slopes = 0.0;
    for (int64_t i = c * sharing; i < (c + 1) * sharing; ++i) {
      const float ratio = w.data()[i] / scale.data()[c];
      const float code = std::nearbyint(ratio);
      const float slope = code < -127.0f ? -127.0f : code > 127.0f ? 127.0f : code - ratio;
      slopes += static_cast<double>(slope);
    }
    const double expected = slopes / std::sqrt(static_cast<double>(sharing) * 127.0);
    CHECK(scale.grad().data()[c] ==
          quantrain::test::Approx(expected).epsilon(1e-5));  // float32 result
  }
}

TEST_CASE("apply() uses the parameters that params() returns", "[quant][weights]") {
  const Tensor w = random_normal({70, 300}, 1);
  for (const bool per_channel : {false, true}) {
    for (const QScheme scheme : {QScheme::kSymmetric, QScheme::kAffine}) {
      for (const Estimator estimator : {Estimator::kClamped, Estimator::kPlain}) {
        for (const bool narrow : {false, true}) {
          CAPTURE(per_channel, scheme == QScheme::kAffine, estimator == Estimator::kPlain, narrow);
          const WeightConfig config{.narrow = narrow,
                                    .per_channel = per_channel,
                                    .scheme = scheme,
                                    .estimator = estimator};
          WeightQuantizer quantizer(config, {w, {}}, nullptr);
          const Tensor y = quantizer.apply({w, {}}, Tensor::zeros({1, 300})).weight;
          CHECK(y.codes()->params == quantizer.params());
        }
      }
    }
  }
}

TEST_CASE("a weight without elements is refused", "[quant][weights]") {
  QUANTRAIN_CHECK_ERROR(WeightQuantizer({}, {Tensor::zeros({3, 0}), {}}, nullptr),
                        ShapeError,
                        "[WeightQuantizer] the weight [3, 0] has no element");
}

TEST_CASE(
    "a folded bias has the same value in training and in evaluation, but no gradient in training",
    "[quant][weights]") {
  BatchNorm1d norm{4};
  const std::vector<NamedState> own = norm.named_parameters();
  const std::vector<float> gammas{0.8f, -1.3f, 1e-7f, 2.0f};
  for (const NamedState& parameter : own) {
    Tensor tensor = parameter.tensor;  // gamma, then beta
    std::copy(gammas.begin(), gammas.end(), tensor.mutable_data());
  }
  Folding folding("norm", norm);
  const Tensor values = random_normal({4}, 8);
  std::copy_n(values.data(), 4, folding.running_mean.mutable_data());
  const Tensor w = random_normal({4, 9}, 5);
  for (const Tensor& bias : {random_normal({4}, 6), Tensor()}) {
    folding.training = false;
    const Tensor evaluated = fold_bias({w, bias}, folding).bias;
    folding.training = true;
    const Tensor trained = fold_bias({w, bias}, folding).bias;
    CHECK(evaluated.requires_grad());
    CHECK_FALSE(trained.requires_grad());
    CHECK(quantrain::test::values(trained) == quantrain::test::values(evaluated));
    for (int64_t c = 0; c < 4; ++c) {
      const double factor = (c == 2 ? 1e-5 : static_cast<double>(gammas[static_cast<size_t>(c)])) /
                            std::sqrt(1.0 + static_cast<double>(folding.epsilon));
      const double centred = (bias.defined() ? static_cast<double>(bias.data()[c]) : 0.0) -
                             static_cast<double>(values.data()[c]);
      const double beta = gammas[static_cast<size_t>(c)];
      CHECK(trained.data()[c] ==
            quantrain::test::Approx(beta + centred * factor).epsilon(1e-5).margin(1e-9));
    }
  }
  QUANTRAIN_CHECK_ERROR(fold_bias({w, random_normal({3}, 6)}, folding),
                        ShapeError,
                        "[norm] bias [3] does not fit a batch norm of 4 channels");
}

TEST_CASE("a slot that folds a batch norm quantizes the folded weights", "[quant][weights]") {
  const bool per_channel = GENERATE(false, true);
  const bool batch_statistics = GENERATE(false, true);
  const QScheme scheme = GENERATE(QScheme::kSymmetric, QScheme::kAffine);
  CAPTURE(per_channel, batch_statistics, scheme);
  BatchNorm1d norm{4};
  const std::vector<NamedState> own = norm.named_parameters();
  const std::vector<float> gammas{0.8f, -1.3f, 1e-7f, 2.0f};
  Tensor gamma = own[0].tensor;
  std::copy(gammas.begin(), gammas.end(), gamma.mutable_data());
  Tensor w = random_normal({4, 9}, 5);
  std::fill_n(w.mutable_data() + 27, 9, 0.0f);
  Tensor bias = random_normal({4}, 6);
  for (Tensor* leaf : {&w, &bias}) leaf->set_requires_grad(true);
  const Tensor direction = random_normal({4, 9}, 7);
  const auto folding = std::make_shared<Folding>("norm", norm);
  folding->training = batch_statistics;
  const WeightConfig config{.per_channel = per_channel, .scheme = scheme};

  // The slot has the same parameters as a slot without batch norm that is given the folded weights.
  const auto run = [&](auto&& apply) {
    for (Tensor leaf : {w, gamma}) leaf.zero_grad();
    const Tensor quantized = apply();
    sum(mul(quantized, direction)).backward();
    return std::vector{quantrain::test::values(quantized),
                       quantrain::test::values(w.grad()),
                       quantrain::test::values(gamma.grad())};
  };
  QParams params;
  const auto together = run([&] {
    WeightQuantizer slot(config, {w, bias}, folding);
    const Weights result = slot.apply({w, bias}, Tensor::zeros({1, 9}));
    CHECK(result.bias.defined() == !batch_statistics);
    params = slot.params();
    return result.weight;
  });
  const auto apart = run([&] {
    const Weights folded = fold_batch_norm({w, bias}, *folding);
    WeightQuantizer slot(config, folded, nullptr);
    CHECK(slot.params() == params);
    return slot.apply(folded, Tensor::zeros({1, 9})).weight;
  });
  CHECK(together == apart);

  w.mutable_data()[26] = std::nanf("");
  WeightQuantizer slot(config, {w, bias}, folding);
  CHECK_THROWS_AS(slot.apply({w, bias}, Tensor::zeros({1, 9})), Error);
  CHECK_THROWS_AS(slot.params(), Error);
}

// Adds a constant in training mode only.
class TrainingNoise : public Module {
 public:
  std::string_view type() const override { return "TrainingNoise"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return training() ? quantrain::add(x, Tensor::full({1}, 0.5f)) : x;
  }
};

TEST_CASE("dropout between a layer and its folded batch norm keeps the statistics",
          "[quant][weights]") {
  const auto network = [] {
    manual_seed(3);
    Sequential net{Linear{6, 5, {.bias = false}}, Dropout{0.25f}, BatchNorm1d{5}, ReLU{}};
    Tensor gamma = net.find("2").parameters()[0];
    std::fill_n(gamma.mutable_data(), 5, 40.0f);
    return net;
  };
  const Tensor x = random_images({64, 6}, 4);
  Sequential expected = network();
  Sequential net = network();
  prepare_qat(net, x, QConfig::int8());
  expected(x);
  net(x);
  // They differ by the rounding of 8-bit weights.
  CHECK(quantrain::test::max_difference(
            dynamic_cast<BatchNorm1d&>(net.find("2")).running_var(),
            dynamic_cast<BatchNorm1d&>(expected.find("2")).running_var()) < 1e-3);
}

TEST_CASE("an operation that runs only in training does not hide a layer from its batch norm",
          "[quant][weights]") {
  Sequential net{Linear{6, 5}, TrainingNoise{}, BatchNorm1d{5}, ReLU{}};
  const Tensor x = random_images({8, 6}, 4);
  prepare_qat(net, x, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(net(x),
                        GraphError,
                        "[2] the input is not the result of 0, whose weights contain this batch "
                        "norm: an operation in between");
}

TEST_CASE("a network can be read and saved while another thread runs it", "[quant][weights]") {
  manual_seed(2);
  Sequential net = test::conv_net();
  const Tensor x = random_images({2, 8, 8, 1}, 4);
  prepare_ptq(net, x, QConfig::int8());
  calibrate(net, x);
  net.eval();
  const auto run = [&] {
    const NoGrad no_grad;
    return quantrain::test::values(net(x));
  };
  const std::vector<float> expected = run();
  const QParams params = weight_quantizer(net, "0").params();
  int differing = 0;
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) differing += run() != expected ? 1 : 0;
  });
  const quantrain::test::TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    CHECK(weight_quantizer(net, "0").params() == params);
    CHECK(ranges(net).slots.size() == 6);
    CHECK(summary(net, x).parameters > 0);
    save(net, folder / "state");
  }
  other.join();
  CHECK(differing == 0);
}

TEST_CASE("a learned weight scale starts from the folded weights", "[quant][weights]") {
  const float variance = GENERATE(1e-4f, 1e4f);
  const bool bias = GENERATE(false, true);
  CAPTURE(variance, bias);
  manual_seed(1);
  Sequential net{
      Conv2d{1, 4, {.kernel = 3, .bias = bias}}, BatchNorm2d{4}, Flatten{}, Linear{144, 4}};
  Tensor running = dynamic_cast<BatchNorm2d&>(net.find("1")).running_var();
  std::fill_n(running.mutable_data(), 4, variance);
  net.eval();
  const NoGrad no_grad;
  const Tensor images = random_images({20, 8, 8, 1}, 4);
  const Tensor exact = net(images);

  QConfig config = QConfig::int8();
  config.layers["0"].weight.estimator = Estimator::kLearned;
  prepare_ptq(net, images, config);
  const auto& conv = dynamic_cast<const Conv2d&>(net.find("0"));
  double mean = 0.0;  // of |w / sqrt(variance + epsilon)| in the first channel
  for (int i = 0; i < 9; ++i) mean += std::abs(static_cast<double>(conv.weight().data()[i])) / 9.0;
  mean /= std::sqrt(static_cast<double>(variance) + 1e-5);
  CHECK(conv.slots().weight->parameters()[0].data()[0] ==
        quantrain::test::Approx(2.0 * mean / std::sqrt(127.0)).epsilon(1e-5));

  calibrate(net, images);
  const Tensor quantized = net(images);
  double error = 0.0;
  double size = 0.0;
  for (int64_t i = 0; i < exact.elements(); ++i) {
    const double value = static_cast<double>(exact.floats()[i]);
    error += std::pow(value - static_cast<double>(quantized.floats()[i]), 2);
    size += value * value;
  }
  CHECK(std::sqrt(error / size) < 0.1);  // it is 0.81 if unfolded weights set the scale
}

TEST_CASE("a bias that would not fit in 2^30 makes the scale of its weights larger",
          "[quant][weights]") {
  const Estimator estimator = GENERATE(Estimator::kClamped, Estimator::kLearned);
  const int bits = GENERATE(8, 2);
  CAPTURE(estimator, bits);
  // The first layer has a scale for each channel, the second has one scale.
  Sequential net{Linear{2, 3}, ReLU{}, Linear{3, 2}};
  fill(net.find("0"), {1e-6f, -1e-6f, 0.5f, 0.25f, 2e-6f, 0.0f}, {1.0f, 0.125f, -1e3f});
  fill(net.find("2"), {1e-6f, -1e-6f, 1e-6f, 0.0f, 1e-6f, 0.0f}, {0.25f, -2e3f});
  const Tensor images = random_images({20, 2}, 3);
  QConfig config = QConfig::bits(bits, 8);
  config.model.weight.estimator = estimator;
  config.layers["2"] = config.model;
  config.layers["2"].weight.per_channel = false;
  prepare_qat(net, images, config);
  train_once(net, images);
  const IntegerModel model = convert(net, images);
  check_parity(net, model, images);

  const float scale_x = 1.0f / 255.0f;
  const QType type{.bits = bits, .is_signed = true, .narrow = true};
  const auto by_bias = [&](float bias, float scale) {
    return weight_scale(0.0f, bias, scale, type, "");
  };
  const std::vector<float> first = weight_scales(net, images, "0");
  REQUIRE(first.size() == 3);
  const float hidden = test::step_output(model, 0).params.value().scale[0];
  const std::vector<float> second = weight_scales(net, images, "2");
  REQUIRE(second.size() == 1);
  CHECK(first[2] == by_bias(1e3f, scale_x));
  CHECK(second[0] == by_bias(2e3f, hidden));
  CHECK(first[1] > by_bias(0.125f, scale_x));  // set by the weights, not by the bias
  const std::vector<int32_t> codes = biases(model, 0);
  CHECK(codes[2] <= -(1 << 30) + (1 << 7));
  CHECK(biases(model, 1)[1] <= -(1 << 30) + (1 << 7));
  if (estimator == Estimator::kClamped && bits == 8) CHECK(first[0] == by_bias(1.0f, scale_x));
}

TEST_CASE("a bias that is almost 0 leaves a learned scale as it is", "[quant][weights]") {
  Sequential net{Linear{2, 2}, ReLU{}, Linear{2, 2}};
  fill(net.find("0"), {0.5f, -0.25f, 0.125f, 0.5f}, {1e-35f, -1e-42f});
  fill(net.find("2"), {0.5f, -0.25f, 0.125f, 0.5f}, {1e-35f, 0.0f});
  const Tensor images = random_images({20, 2}, 3);
  QConfig config = QConfig::int8();
  config.model.weight.estimator = Estimator::kLearned;
  prepare_qat(net, images, config);
  net(images);
  for (const char* layer : {"0", "2"}) {
    const Tensor learned = weight_quantizer(net, layer).parameters()[0];
    CHECK(weight_scales(net, images, layer) == quantrain::test::values(learned));
  }
}

TEST_CASE("a weight scale for the narrow range clamps no weight", "[quant][weights]") {
  Random random(1);
  for (const int bits : {2, 3, 4, 8}) {
    const QType type{.bits = bits, .is_signed = true, .narrow = true};
    bool all = true;
    for (int i = 0; i < 100'000; ++i) {
      // Any finite float that is not negative, subnormal ones too.
      const float largest = std::bit_cast<float>(static_cast<uint32_t>(random.below(0x7f800000)));
      const float scale = weight_scale(largest, 0.0f, 1.0f, type, "");
      all &= gradient_passes(largest, scale, 0, type.qmin(), type.qmax()) &&
             gradient_passes(-largest, scale, 0, type.qmin(), type.qmax());
    }
    CHECK(all);
  }
}

TEST_CASE(
    "with the plain estimator, weights and activations outside their range get gradients, too",
    "[quant][weights]") {
  const Estimator estimator = GENERATE(Estimator::kClamped, Estimator::kPlain);
  const bool plain = estimator == Estimator::kPlain;
  CAPTURE(plain);
  // With 2 bits and full range, the scale is 2 * 1.5 / 3 = 1, and 1.5 rounds to 2, beyond the
  // largest code 1.
  Sequential net{Linear{2, 1}, ReLU{}, Linear{1, 2}};
  fill(net.find("0"), {1.5f, 0.25f}, {0.0f});
  fill(net.find("2"), {1.0f, 0.5f}, {0.0f, 0.0f});
  QConfig config = QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  config.layers["0"] = config.model;
  config.layers["0"].weight = {.bits = 2, .narrow = false, .estimator = estimator};
  prepare_qat(net, Tensor::full({1, 2}, 1.0f), config);
  Tensor weight = net.find("0").named_parameters()[0].tensor;
  train_once(net, Tensor::full({1, 2}, 1.0f));
  CHECK((weight.grad().data()[0] != 0.0f) == plain);
  CHECK(weight.grad().data()[1] != 0.0f);

  // A hidden activation that exceeds the range of the first batch.
  Sequential other{Linear{2, 1}, ReLU{}, Linear{1, 2}};
  fill(other.find("0"), {1.0f, 0.5f}, {0.0f});
  fill(other.find("2"), {1.0f, 0.5f}, {0.0f, 0.0f});
  config = QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  config.model.activation.estimator = estimator;
  prepare_qat(other, Tensor::full({1, 2}, 1.0f), config);
  other(Tensor::full({1, 2}, 0.1f));
  set_phase(other, Phase::kFrozen);
  train_once(other, Tensor::full({1, 2}, 1.0f));
  weight = other.find("0").named_parameters()[0].tensor;
  CHECK((weight.grad().data()[1] != 0.0f) == plain);
}

TEST_CASE("a given scale clamps weights, and clamped weights get no gradient", "[quant][weights]") {
  Sequential net{Linear{2, 1}, ReLU{}, Linear{1, 2}};
  fill(net.find("0"), {4.0f, 0.5f}, {0.0f});
  fill(net.find("2"), {1.0f, 0.5f}, {0.0f, 0.0f});
  QConfig config = QConfig::int4();
  config.input_range = {0.0f, 1.0f};
  config.layers["0"] = config.model;
  config.layers["0"].weight.bits = 4;
  prepare_qat(net, Tensor::full({1, 2}, 1.0f), config);
  weight_quantizer(net, "0").set_params(
      {{.bits = 4, .is_signed = true, .narrow = true}, 0, {0.25f}, {0}});
  train_once(net, Tensor::full({1, 2}, 1.0f));
  const Tensor weight = net.find("0").named_parameters()[0].tensor;
  const Tensor grad = weight.grad();
  CHECK(grad.data()[0] == 0.0f);  // 4 is 16 steps of 0.25; the largest code is 7
  CHECK(grad.data()[1] != 0.0f);
}

TEST_CASE("weights that were quantized elsewhere keep their codes", "[quant][weights]") {
  const Estimator estimator = GENERATE(Estimator::kClamped, Estimator::kLearned);
  CAPTURE(estimator);
  const Tensor images = random_images({20, 2}, 3);
  QConfig config = QConfig::int4();
  config.model.weight.estimator = estimator;
  const auto prepared = [&] {
    Sequential net{Linear{2, 3}, ReLU{}, Linear{3, 2}};
    // Each row is a row of codes times a power of two, which is far from the scale that the
    // quantizer would choose.
    fill(net.find("0"), {0.5f, -0.25f, 2.0f, 1.0f, -3.0f, 4.0f}, {0.0f, 0.5f, -1.0f});
    prepare_qat(net, images, config);
    return net;
  };
  Sequential net = prepared();
  WeightQuantizer& weights = weight_quantizer(net, "0");
  const QParams given{
      {.bits = 4, .is_signed = true, .narrow = true}, 0, {0.25f, 1.0f, 1.0f}, {0, 0, 0}};
  CHECK_FALSE(weights.is_given());
  weights.set_params(given);
  CHECK(weights.is_given());
  const auto check_codes = [&](Module& deployed) {
    CHECK(weight_scales(deployed, images, "0") == given.scale);
    const IntegerModel model = convert(deployed, images);
    const auto& op = *integer::product(model.program().steps[0].operation);
    CHECK(op.weight.values() == std::vector<int8_t>{2, -1, 2, 1, -3, 4});
    check_parity(deployed, model, images);
  };
  calibrate(net, images);
  check_codes(net);
  const quantrain::test::TemporaryFolder folder;
  save(net, folder / "net.safetensors");
  Sequential other = prepared();
  load(other, folder / "net.safetensors");
  check_codes(other);
  for (const Phase phase : {Phase::kTraining, Phase::kFrozen}) {
    set_phase(net, phase);
    net.train();
    net.zero_grad();
    sum(net(images)).backward();
    for (const NamedState& parameter : net.named_parameters()) {
      if (parameter.name == "0.weight_slot.scale") CHECK_FALSE(parameter.tensor.grad().defined());
    }
    CHECK(weight_scales(net, images, "0") == given.scale);
  }

  QUANTRAIN_CHECK_ERROR(
      weights.set_params({given.type, 0, {0.25f, 1.0f}, {0, 0}}), QuantError, "with 3 channels");
  QUANTRAIN_CHECK_ERROR(weights.set_params({given.type, 0, {1.0f, 1.0f, 1.0f}, {0, 1, 0}}),
                        QuantError,
                        "symmetric weights have zero point 0");
  QUANTRAIN_CHECK_ERROR(
      weights.set_params({given.type, -1, {0.25f}, {0}}), QuantError, "along axis 0");
  QUANTRAIN_CHECK_ERROR(weights.set_params({given.type, 0, {0.25f, 0.0f, 1.0f}, {0, 0, 0}}),
                        QuantError,
                        "not positive");
  QUANTRAIN_CHECK_ERROR(
      weights.set_params(
          {{.bits = 8, .is_signed = true, .narrow = true}, 0, {1.0f, 1.0f, 1.0f}, {0, 0, 0}}),
      QuantError,
      "do not fit: expected type");
  CHECK(weight_scales(net, images, "0") == given.scale);

  // A scale in which the bias does not fit is refused, and the bias is not clamped.
  weights.set_params({given.type, 0, {1e-9f, 1e-9f, 1e-9f}, {0, 0, 0}});
  QUANTRAIN_CHECK_ERROR(net(images), QuantError, "exceeds 2^30");
}

TEST_CASE("a vanishing gamma trains and converts", "[quant][weights][batch_norm]") {
  const Tensor images = random_images({12, 8, 8, 1}, 3);
  Sequential net = test::conv_net();
  auto& norm = dynamic_cast<BatchNorm2d&>(net.find("1"));
  const std::vector<float> gammas{0.0f, 1e-7f, -1e-7f, 1.0f, -0.0f, -1.0f};
  const auto vanish = [&] {
    Tensor gamma = norm.gamma();
    std::copy(gammas.begin(), gammas.end(), gamma.mutable_data());
    Tensor beta = norm.beta();
    std::fill_n(beta.mutable_data(), 6, 0.5f);
  };
  vanish();
  prepare_qat(net, images, QConfig::int8());
  train_once(net, images);
  // Every gamma has a gradient, so it can grow again.
  for (int c = 0; c < 6; ++c) CHECK(norm.gamma().grad().data()[c] != 0.0f);
  const IntegerModel model = convert(net, images);
  check_parity(net, model, images);
  for (const float scale : weight_scales(net, images, "0")) CHECK(scale > 0.0f);

  test::train_a_little(net, {6, 8, 8, 1}, 3);
  vanish();
  check_parity(net, convert(net, images), images);
}

}  // namespace quantrain::quant
