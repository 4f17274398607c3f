// Learned ranges of activations: values and gradients against PyTorch
// (tests/reference/make_training_methods.py), and what holds for every estimator.
#include "quant/prepare/methods/estimator.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
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

using quantrain::test::Approx;
using quantrain::test::check_close;
using quantrain::test::Json;
using quantrain::test::to_tensor;
using quantrain::test::values;
using test::check_kept;
using test::check_parity;
using test::random_images;

FakeQuantize learning_slot(Estimator estimator, int bits, bool is_signed = false) {
  return FakeQuantize({.type = {.bits = bits, .is_signed = is_signed},
                       .observer = MinMaxOptions{},
                       .estimator = estimator});
}

void assign(Tensor parameter, float value) { parameter.mutable_data()[0] = value; }

QConfig learning_config(Estimator estimator, int bits) {
  QConfig config = QConfig::bits(4, bits);
  config.model.activation.estimator = estimator;
  return config;
}

/// The output slot's parameters after y = grad . x was passed backward.
void pass_back(FakeQuantize& slot, Tensor& x, const Json& json) {
  const Tensor y = slot(x);
  check_close(y, json.at("y"), test::kFewOperations);
  sum(mul(y, to_tensor(json.at("g")))).backward();
  check_close(x.grad(), json.at("grad_x"), test::kFewOperations);
}

}  // namespace

TEST_CASE("LSQ+ and its gradients equal PyTorch's", "[quant][learned][vectors]") {
  for (const Json& json : test::training_cases("lsq_plus")) {
    CAPTURE(json.at("bits").get<int>());
    FakeQuantize slot = learning_slot(
        Estimator::kLearnedOffset, json.at("bits").get<int>(), json.at("signed").get<bool>());
    Tensor x = to_tensor(json.at("x")).set_requires_grad(true);
    slot(x);  // sets the start
    const std::vector<NamedState> parameters = slot.named_parameters();
    REQUIRE(parameters.size() == 2);
    CHECK(parameters[0].name == "scale");
    CHECK(parameters[1].name == "offset");
    assign(parameters[0].tensor, json.at("s").get<float>());
    assign(parameters[1].tensor, json.at("beta").get<float>());
    pass_back(slot, x, json);
    CHECK(parameters[0].tensor.grad().item() ==
          Approx(json.at("grad_s").get<double>()).epsilon(2e-5));
    CHECK(parameters[1].tensor.grad().item() ==
          Approx(json.at("grad_beta").get<double>()).epsilon(2e-5));
  }
}

TEST_CASE("PACT and its gradients equal PyTorch's", "[quant][learned][vectors]") {
  for (const Json& json : test::training_cases("pact")) {
    CAPTURE(json.at("bits").get<int>());
    FakeQuantize slot = learning_slot(Estimator::kPact, json.at("bits").get<int>());
    slot(Tensor::from({1, 2}, std::vector<float>{0.0f, 2.0f}));  // no negative value
    const std::vector<NamedState> parameters = slot.named_parameters();
    REQUIRE(parameters.size() == 1);
    CHECK(parameters[0].name == "alpha");
    CHECK(parameters[0].tensor.item() == Approx(2.0).epsilon(1e-6));
    assign(parameters[0].tensor, json.at("alpha").get<float>());
    Tensor x = to_tensor(json.at("x")).set_requires_grad(true);
    pass_back(slot, x, json);
    CHECK(parameters[0].tensor.grad().item() ==
          Approx(json.at("grad_alpha").get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("PACT keeps negative values where the first tensor has some", "[quant][learned]") {
  FakeQuantize slot = learning_slot(Estimator::kPact, 2);  // codes 0 to 3
  Tensor x = Tensor::from({1, 4}, std::vector<float>{-1.0f, 2.0f, -3.0f, 0.5f});
  slot(Tensor::from({1, 2}, std::vector<float>{-1.0f, 2.0f}));  // scale 1, zero point 1
  CHECK(slot.params().scale[0] == 1.0f);
  CHECK(slot.params().zero_point[0] == 1);
  x.set_requires_grad(true);
  const Tensor y = slot(x);  // alpha = 2: the range is [-1, 2]
  CHECK(values(y) == std::vector<float>{-1.0f, 2.0f, -1.0f, 0.0f});
  sum(mul(y, Tensor::from({1, 4}, std::vector<float>{1.0f, 10.0f, 100.0f, 1000.0f}))).backward();
  CHECK(values(x.grad()) == std::vector<float>{1.0f, 0.0f, 0.0f, 1000.0f});
  CHECK(slot.parameters()[0].grad().item() == 10.0f - 0.5f * 100.0f);
}

TEST_CASE("learned parameters stay in their domain", "[quant][learned]") {
  const Tensor x = Tensor::from({1, 4}, std::vector<float>{0.5f, 1.5f, 1.75f, 0.25f});  // mean 1
  SECTION("alpha is at least the mean magnitude after a step") {
    FakeQuantize slot = learning_slot(Estimator::kPact, 4);
    slot(x);
    Tensor alpha = slot.parameters()[0];
    Sgd sgd({alpha}, {.learning_rate = 10.0f, .weight_decay = 1.0f});
    sum(slot(x)).backward();
    sgd.step();
    CHECK(alpha.item() == 1.0f);
    CHECK(slot.params().scale[0] == 1.0f / 15.0f);
  }
  SECTION("the range of LSQ+ holds 0") {
    FakeQuantize slot = learning_slot(Estimator::kLearnedOffset, 4);
    slot(x);
    const std::vector<Tensor> parameters = slot.parameters();
    for (const float beta : {3.0f, -100.0f}) {
      assign(parameters[0], 0.25f);
      assign(parameters[1], beta);
      const int32_t expected = beta > 0.0f ? 0 : 15;
      CHECK(slot.params().zero_point[0] == expected);
      slot.eval();
      slot(x);
      CHECK(parameters[1].item() == beta);  // evaluation writes nothing
      slot.train();
      slot(x);
      CHECK(parameters[1].item() == -0.25f * static_cast<float>(expected));
      CHECK(slot.params().zero_point[0] == expected);
    }
  }
}

TEST_CASE("an offset or a scale of LSQ+ that is not finite is reported", "[quant][learned]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from({1, 2}, std::vector<float>{-1.0f, 2.0f});
  for (const size_t i : {size_t{0}, size_t{1}}) {
    for (const float value : {std::nanf(""), infinity, -infinity}) {
      CAPTURE(i, value);
      FakeQuantize slot = learning_slot(Estimator::kLearnedOffset, 4);
      slot(x);
      assign(slot.parameters()[i], value);
      CHECK_FALSE(std::isfinite(slot.params().scale[0]));
      CHECK_THROWS_AS(slot(x), QuantError);
      slot.eval();
      CHECK_THROWS_AS(slot(x), QuantError);
    }
  }
}

TEST_CASE("every learned range starts, trains, freezes, is kept and deploys", "[quant][learned]") {
  for (const EstimatorKind& kind : kEstimatorKinds) {
    if (kind.learned == nullptr) continue;
    for (const int bits : {2, 8}) {
      CAPTURE(kind.name, bits);
      const QConfig config = learning_config(kind.estimator, bits);
      CHECK(QConfig::from_json(config.to_json()) == config);
      manual_seed(1);
      const Tensor images = random_images({6, 8, 8, 1}, 2);
      Sequential layers = test::branched_net();
      Network net = trace(layers, images);
      prepare_qat(net, images, config);
      test::train_a_little(net, {6, 8, 8, 1}, 4);
      for (const SlotRange& slot : ranges(net).slots) {
        if (slot.name.ends_with("output_slot")) CHECK(slot.source == "learned");
      }
      net.eval();
      check_parity(net, convert(net, images), images);
      net.train();
      freeze(net);
      net.zero_grad();
      sum(net(images)).backward();
      for (const NamedState& entry : net.named_parameters()) {
        CAPTURE(entry.name);
        CHECK(entry.tensor.grad().defined() ==
              (entry.name.find("output_slot") == std::string::npos));
      }
      test::train_a_little(net, {6, 8, 8, 1}, 2);
      check_kept(net, images);
    }
  }
}

TEST_CASE("learned ranges train with the same bits on any number of threads", "[quant][learned]") {
  const auto trained = [](Estimator estimator, int threads) {
    set_threads(threads);
    manual_seed(2);
    Sequential net{
        Conv2d{1, 24, {.kernel = 3, .padding = 1}}, ReLU{}, Flatten{}, Linear{24 * 256, 4}};
    prepare_qat(net, random_images({8, 16, 16, 1}, 1), learning_config(estimator, 3));
    test::train_a_little(net, {8, 16, 16, 1}, 3);
    set_threads(0);
    return quantrain::test::bytes_of(state(net));
  };
  for (const EstimatorKind& kind : kEstimatorKinds) {
    CAPTURE(kind.name);
    CHECK((trained(kind.estimator, 1) ==
           trained(kind.estimator, quantrain::test::thread_counts({1, 2}).back())));
  }
}

TEST_CASE("given parameters of a learned range stay exactly", "[quant][learned]") {
  for (const EstimatorKind& kind : kEstimatorKinds) {
    CAPTURE(kind.name);
    const QParams params{{.bits = 4}, -1, {0.1f / 3.0f}, {5}};
    FakeQuantize slot(params, kind.estimator);
    CHECK(slot.params() == params);
    const Tensor x = Tensor::from({1, 2}, std::vector<float>{-0.1f, 0.4f});
    slot(x);
    CHECK(slot.params() == params);
  }
}

TEST_CASE("estimators that do not fit are refused", "[quant][learned]") {
  const auto refused = [](const char* message, const std::function<void(LayerConfig&)>& change) {
    QConfig config = QConfig::bits(4, 4);
    change(config.model);
    QUANTRAIN_CHECK_ERROR(validate(config), QuantError, message);
    QUANTRAIN_CHECK_ERROR(QConfig::from_json(config.to_json()), QuantError, message);
  };
  refused("[QConfig] model: a learned offset needs the affine scheme", [](LayerConfig& l) {
    l.activation.scheme = QScheme::kSymmetric;
    l.activation.estimator = Estimator::kLearnedOffset;
  });
  for (const Estimator estimator : {Estimator::kLearnedOffset, Estimator::kPact}) {
    refused("[QConfig] model: weights have no offset and no range of activations to learn",
            [estimator](LayerConfig& l) { l.weight.estimator = estimator; });
  }
  QUANTRAIN_CHECK_ERROR(FakeQuantize({.type = {.bits = 4},
                                      .scheme = QScheme::kSymmetric,
                                      .estimator = Estimator::kLearnedOffset}),
                        QuantError,
                        "[FakeQuantize] a learned offset needs the affine scheme");
}

}  // namespace quantrain::quant
