// Weight functions: values and gradients against PyTorch
// (tests/reference/make_training_methods.py), and what holds for every kind.
#include "quant/prepare/methods/weight_function.hpp"

#include <cmath>
#include <functional>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/optim/adam.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/adaround.hpp"
#include "quant/methods/method.hpp"
#include "quant/methods/weight_ranges.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/quant/kept_network.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/quant/training_vectors.hpp"
#include "tests/state_bytes.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::check_close;
using quantrain::test::Json;
using quantrain::test::to_tensor;
using quantrain::test::values;
using test::check_kept;
using test::check_parity;
using test::random_images;

// The gradient of DoReFa sums a row in double, but tanh is computed in float32.
constexpr quantrain::test::Tolerance kSum{4e-6, 2e-5};

/// The fewest bits that fit the function.
QConfig config_with(const WeightFunction& function) {
  QConfig config = QConfig::bits(std::holds_alternative<Binary>(function) ? 1 : 2, 4);
  config.model.weight.function = function;
  return config;
}

std::string compact(const QConfig& config) {
  std::string text = config.to_json();
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

}  // namespace

TEST_CASE("ternary weights and their gradient equal PyTorch's", "[quant][methods][vectors]") {
  for (const Json& json : test::training_cases("ternary")) {
    const Ternary ternary{.threshold = json.at("threshold").get<float>()};
    Tensor w = to_tensor(json.at("w")).set_requires_grad(true);
    const Tensor g = to_tensor(json.at("g"));
    const Tensor t = ternary(w, true);
    check_close(t, json.at("t"), test::kFewOperations);
    sum(mul(t, g)).backward();
    CHECK(values(w.grad()) == values(to_tensor(json.at("grad_w"))));

    // In a layer, with a batch norm folded in: its factor is gamma / sqrt(1 + epsilon).
    BatchNorm1d norm{w.dim(0), {.epsilon = 1e-20f}};
    Tensor gamma = norm.named_parameters()[0].tensor;
    const Tensor factor = to_tensor(json.at("factor"));
    std::copy_n(factor.data(), factor.elements(), gamma.mutable_data());
    const auto folding = std::make_shared<Folding>("norm", norm);
    WeightQuantizer slot({.bits = 2, .function = ternary}, {w, {}}, folding);
    w.zero_grad();
    const Tensor y = slot.apply({w, {}}, Tensor::zeros({1, w.dim(1)})).weight;
    const Tensor codes = to_tensor(json.at("codes"));
    const Codes& deployed = *y.codes();
    for (int64_t i = 0; i < y.elements(); ++i)
      CHECK(static_cast<float>(deployed.s8()[i]) == codes.data()[i]);
    const Tensor scale = to_tensor(json.at("scale"));
    check_close(
        Tensor::from(scale.shape(), deployed.params.scale), json.at("scale"), test::kFewOperations);
    CHECK(slot.params() == deployed.params);
    sum(mul(y, g)).backward();
    check_close(w.grad(), json.at("grad_w_folded"), test::kFewOperations);
  }
}

TEST_CASE("ternary weights keep what exceeds 0.7 of the mean", "[quant][methods]") {
  // mean |w| = 1: 0.7 is not kept, and the mean of the others is (1 + 1.5) / 2. float32 of 0.7 is
  // 0.699999988, so the weight is the next smaller float.
  const float edge = std::nextafter(0.7f, 0.0f);
  const Tensor w = Tensor::from({2, 4}, std::vector<float>{edge, -1.0f, 1.5f, 0.8f, 0, 0, 0, 0});
  CHECK(values(Ternary{}(w, true)) ==
        std::vector<float>{0.0f, -1.1f, 1.1f, 1.1f, 0.0f, 0.0f, 0.0f, 0.0f});
}

TEST_CASE("DoReFa's weights and their gradient equal PyTorch's", "[quant][methods][vectors]") {
  for (const Json& json : test::training_cases("dorefa")) {
    const int bits = json.at("bits").get<int>();
    const bool per_channel = json.at("per_channel").get<bool>();
    CAPTURE(bits, per_channel);
    Tensor w = to_tensor(json.at("w")).set_requires_grad(true);
    WeightQuantizer slot(
        {.bits = bits, .per_channel = per_channel, .function = DoReFa{}}, {w, {}}, nullptr);
    const Tensor y = slot.apply({w, {}}, Tensor::zeros({1, w.dim(1)})).weight;
    check_close(y, json.at("y"), test::kFewOperations);
    sum(mul(y, to_tensor(json.at("g")))).backward();
    check_close(w.grad(), json.at("grad_w"), kSum);
  }
  Tensor zeros = Tensor::zeros({2, 3}).set_requires_grad(true);
  const Tensor t = DoReFa{}(zeros, true);
  CHECK(values(t) == std::vector<float>(6, 0.0f));
  sum(t).backward();
  CHECK(values(zeros.grad()) == std::vector<float>(6, 1.0f));
}

TEST_CASE("every weight function trains, freezes, is kept and deploys", "[quant][methods]") {
  for (const WeightFunction& function : weight_functions()) {
    CAPTURE(kind(function));
    const QConfig config = config_with(function);
    CHECK(QConfig::from_json(config.to_json()) == config);
    CHECK(compact(config).find("\"function\":{\"kind\":\"" + std::string(kind(function))) !=
          std::string::npos);
    manual_seed(1);
    const Tensor images = random_images({6, 8, 8, 1}, 2);
    Sequential layers = test::conv_net();
    Network net = trace(layers, images);
    prepare_qat(net, images, config);
    test::train_a_little(net, {6, 8, 8, 1}, 4);
    net.eval();
    check_parity(net, convert(net, images), images);
    net.train();
    freeze(net);
    test::train_a_little(net, {6, 8, 8, 1}, 2);
    Network again = check_kept(net, images);
    CHECK(values(again(images)) == values(net(images)));
  }
}

TEST_CASE("float passes compute with the weight function", "[quant][methods]") {
  for (const WeightFunction& function : weight_functions()) {
    CAPTURE(kind(function));
    manual_seed(1);
    const Tensor images = random_images({6, 8, 8, 1}, 2);
    Sequential net = test::conv_net();
    prepare_qat(net, images, config_with(function));
    test::train_a_little(net, {6, 8, 8, 1}, 4);
    net.eval();
    Sequential plain = test::conv_net();
    const std::vector<NamedState> trained = state(net);
    for (NamedState& entry : state(plain)) {
      const bool weight = entry.name.ends_with(".weight") && entry.shape().rank() > 1;
      NamedState from = quantrain::test::entry_of(trained, entry.name);
      if (weight) from.tensor = apply(function, from.tensor, true).detach();
      entry.copy_values(from);
    }
    plain.eval();
    const FloatMode floats(net);
    CHECK(values(net(images)) == values(plain(images)));
  }
}

TEST_CASE("a state of other options of a weight function is refused", "[quant][methods]") {
  const quantrain::test::TemporaryFolder folder;
  const auto prepared = [](const WeightFunction& function) {
    Sequential net = test::mlp();
    prepare_qat(net, random_images({4, 12}, 1), config_with(function));
    return net;
  };
  const Sequential net = prepared(Ternary{});
  save(net, folder / "net");
  Sequential same = prepared(Ternary{});
  load(same, folder / "net");
  Sequential other = prepared(Ternary{.threshold = 0.5f});
  QUANTRAIN_CHECK_ERROR(load(other, folder / "net"), Error, "0.weight_slot.function.threshold");
}

TEST_CASE("weight functions train with the same bits on any number of threads",
          "[quant][methods]") {
  const auto trained = [](const WeightFunction& function, int threads) {
    set_threads(threads);
    manual_seed(2);
    Sequential net{Linear{150, 140}, BatchNorm1d{140}, ReLU{}, Linear{140, 4}};
    prepare_qat(net, random_images({8, 150}, 1), config_with(function));
    test::train_a_little(net, {8, 150}, 3);
    set_threads(0);
    return quantrain::test::bytes_of(state(net));
  };
  for (const WeightFunction& function : weight_functions()) {
    CAPTURE(kind(function));
    CHECK(
        (trained(function, 1) == trained(function, quantrain::test::thread_counts({1, 2}).back())));
  }
}

TEST_CASE("a weight that is not finite is reported through a weight function", "[quant][methods]") {
  for (const WeightFunction& function : weight_functions()) {
    CAPTURE(kind(function));
    Sequential net = test::mlp();
    const Tensor images = random_images({4, 12}, 1);
    prepare_qat(net, images, config_with(function));
    Tensor weight = net.parameters()[0];
    weight.mutable_data()[5] = std::nanf("");
    CHECK_THROWS_AS(net(images), DataError);
  }
}

TEST_CASE("weight functions that do not fit are refused", "[quant][methods]") {
  const auto refused = [](const char* message, const std::function<void(WeightConfig&)>& change) {
    QConfig config = config_with(Ternary{});
    change(config.model.weight);
    QUANTRAIN_CHECK_ERROR(validate(config), QuantError, message);
    QUANTRAIN_CHECK_ERROR(QConfig::from_json(config.to_json()), QuantError, message);
    Sequential net = test::mlp();
    QUANTRAIN_CHECK_ERROR(prepare_qat(net, random_images({4, 12}, 1), config), QuantError, message);
    CHECK_FALSE(net.find("0").has_filled_slot());
  };
  refused("[QConfig] model: threshold is 1.000000, expected at least 0 and less than 1",
          [](WeightConfig& w) { w.function = Ternary{.threshold = 1.0f}; });
  refused("[QConfig] model: ternary weights are the codes -1, 0 and 1: set bits = 2",
          [](WeightConfig& w) { w.bits = 3; });
  refused("[QConfig] model: ternary weights are the codes -1, 0 and 1",
          [](WeightConfig& w) { w.narrow = false; });
  refused("[QConfig] model: ternary weights have a scale for each output: set per_channel = true",
          [](WeightConfig& w) { w.per_channel = false; });
  refused("[QConfig] model: the weight function ternary needs symmetric weights",
          [](WeightConfig& w) { w.scheme = QScheme::kAffine; });
  refused("[QConfig] model: the weight function ternary leaves no scale to learn",
          [](WeightConfig& w) { w.estimator = Estimator::kLearned; });
  refused("[QConfig] model: the weight function ternary fits no first_bits: ternary weights are",
          [](WeightConfig& w) { w.first_bits = 4; });
  std::string text = compact(config_with(Ternary{}));
  text.replace(text.find("ternary"), 7, "octonary");
  QUANTRAIN_CHECK_ERROR(
      QConfig::from_json(text), QuantError, "no kind \"octonary\"; known: ternary, dorefa, binary");
  text = compact(config_with(Ternary{}));
  text.replace(text.find("threshold"), 9, "threshhold");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json(text), QuantError, "function: lacks \"threshold\"");
}

TEST_CASE("methods after training leave weights alone that pass a function", "[quant][methods]") {
  Sequential net = test::mlp();
  const Tensor images = random_images({32, 12}, 1);
  prepare_ptq(net, images, config_with(DoReFa{}));
  calibrate(net, images);
  std::vector<int32_t> labels(32, 0);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < images.elements(); ++i)
    bytes.push_back(static_cast<uint8_t>(std::lround(images.data()[i] * 255.0f)));
  const Dataset data({32, 12}, bytes, labels, 4);
  const std::vector<float> before = values(net.parameters()[0]);
  const Improvement done = improve(net, DataLoader{data}, {WeightRanges{}, AdaRound{}});
  REQUIRE(done.rows.size() == 4);
  for (const MethodRow& row : done.rows)
    CHECK(row.skipped == "its weights pass the weight function dorefa");
  CHECK(values(net.parameters()[0]) == before);
}

}  // namespace quantrain::quant
