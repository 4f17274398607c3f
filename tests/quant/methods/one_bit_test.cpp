// Weights of 1 bit, and binary weights as a method (tests/reference/make_training_methods.py).
#include <cmath>
#include <functional>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
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

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using quantrain::test::check_close;
using quantrain::test::Json;
using quantrain::test::make_leaf;
using quantrain::test::to_tensor;
using quantrain::test::values;
using test::check_kept;
using test::check_parity;
using test::random_images;

}  // namespace

TEST_CASE("binary weights and their gradient equal PyTorch's", "[quant][methods][vectors]") {
  for (const Json& json : test::training_cases("binary")) {
    Tensor w = to_tensor(json.at("w")).set_requires_grad(true);
    WeightQuantizer slot({.bits = 1, .function = Binary{}}, {w, {}}, nullptr);
    const Tensor y = slot.apply({w, {}}, Tensor::zeros({1, w.dim(1)})).weight;
    check_close(y, json.at("y"), test::kFewOperations);
    CHECK(slot.params() == y.codes()->params);
    sum(mul(y, to_tensor(json.at("g")))).backward();
    CHECK(values(w.grad()) == values(to_tensor(json.at("grad_w"))));
  }
}

TEST_CASE("weights of 1 bit are signs times the mean of their magnitudes", "[quant][weights]") {
  // Rows of means 1 and 0.5; the signs of 0 and -0 are +1.
  const std::vector<float> own{0.5f, -1.5f, 2.0f, 0.0f, -0.0f, -0.25f, 1.5f, 0.25f};
  for (const bool per_channel : {true, false}) {
    Tensor w = make_leaf({2, 4}, own);
    WeightQuantizer slot({.bits = 1, .per_channel = per_channel}, {w, {}}, nullptr);
    const Tensor y = slot.apply({w, {}}, Tensor::zeros({1, 4})).weight;
    const float a = per_channel ? 1.0f : 0.75f;
    const float b = per_channel ? 0.5f : 0.75f;
    CHECK(values(y) == std::vector<float>{a, -a, a, a, b, -b, b, b});
    sum(mul(y, Tensor::from({2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}))).backward();
    CHECK(values(w.grad()) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  }
  // A folded batch norm: its factor is gamma / sqrt(1 + epsilon).
  BatchNorm1d norm{2, {.epsilon = 1e-20f}};
  Tensor gamma = norm.named_parameters()[0].tensor;
  gamma.mutable_data()[0] = -2.0f;
  gamma.mutable_data()[1] = 4.0f;
  Tensor w = make_leaf({2, 4}, own);
  WeightQuantizer slot({.bits = 1}, {w, {}}, std::make_shared<Folding>("norm", norm));
  const Tensor y = slot.apply({w, {}}, Tensor::zeros({1, 4})).weight;
  CHECK(y.codes()->params.scale == std::vector<float>{2.0f, 2.0f});
  // The product with -2 turns 0 into -0, whose sign is +1, too.
  CHECK(values(y) == std::vector<float>{-2.0f, 2.0f, -2.0f, 2.0f, 2.0f, -2.0f, 2.0f, 2.0f});
}

TEST_CASE("a learned scale of 1-bit weights gets the sum of signs", "[quant][learned]") {
  Tensor w = make_leaf({1, 4}, {0.5f, -1.5f, 2.0f, 0.0f});
  WeightQuantizer slot({.bits = 1, .estimator = Estimator::kLearned}, {w, {}}, nullptr);
  Tensor scale = slot.parameters()[0];
  CHECK(scale.item() == 1.0f);  // the mean
  const Tensor y = slot.apply({w, {}}, Tensor::zeros({1, 4})).weight;
  sum(mul(y, Tensor::from({1, 4}, std::vector<float>{1, 10, 100, 1000}))).backward();
  CHECK(scale.grad().item() == Approx((1 - 10 + 100 + 1000) / 2.0).epsilon(1e-6));
}

TEST_CASE("networks of 1 bit train, freeze, are kept and deploy", "[quant][methods]") {
  const auto trained = [](int activation_bits, Estimator estimator, bool binary, int threads) {
    set_threads(threads);
    QConfig config = QConfig::bits(1, activation_bits);
    config.model.activation.estimator = estimator;
    if (binary) config.model.weight.function = Binary{};
    CHECK(QConfig::from_json(config.to_json()) == config);
    manual_seed(1);
    const Tensor images = random_images({6, 8, 8, 1}, 2);
    Sequential layers = test::branched_net();
    Network net = trace(layers, images);
    prepare_qat(net, images, config);
    test::train_a_little(net, {6, 8, 8, 1}, 4);
    net.eval();
    check_parity(net, convert(net, images), images);
    net.train();
    freeze(net);
    test::train_a_little(net, {6, 8, 8, 1}, 2);
    check_kept(net, images);
    set_threads(0);
    return quantrain::test::bytes_of(state(net));
  };
  for (const int bits : {1, 8}) {
    for (const Estimator estimator : {Estimator::kClamped, Estimator::kLearned, Estimator::kPact}) {
      CAPTURE(bits, estimator);
      const bool binary = estimator != Estimator::kClamped;
      CHECK((trained(bits, estimator, binary, 1) ==
             trained(bits, estimator, binary, quantrain::test::thread_counts({1, 2}).back())));
    }
  }
}

TEST_CASE("1 bit that does not fit is refused", "[quant][qconfig]") {
  const auto refused = [](const char* message, const std::function<void(LayerConfig&)>& change) {
    QConfig config = QConfig::bits(1, 1);
    change(config.model);
    QUANTRAIN_CHECK_ERROR(validate(config), QuantError, message);
    QUANTRAIN_CHECK_ERROR(QConfig::from_json(config.to_json()), QuantError, message);
  };
  refused("[QConfig] model: weights of 1 bit are -1 and +1: set narrow = true",
          [](LayerConfig& l) { l.weight.narrow = false; });
  refused("[QConfig] model: weights of 1 bit are -1 and +1, and have no zero point",
          [](LayerConfig& l) { l.weight.scheme = QScheme::kAffine; });
  refused("[QConfig] model: activations of 1 bit are 0 and 1: they are unsigned",
          [](LayerConfig& l) { l.activation.is_signed = true; });
  refused("[QConfig] model: the zero point of 1 bit is 0: set a learned scale or pact",
          [](LayerConfig& l) { l.activation.estimator = Estimator::kLearnedOffset; });
  refused("[QConfig] model: binary weights are the codes -1 and +1: set bits = 1",
          [](LayerConfig& l) {
            l.weight.bits = 2;
            l.weight.function = Binary{};
          });
}

}  // namespace quantrain::quant
