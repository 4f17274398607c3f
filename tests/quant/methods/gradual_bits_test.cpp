#include "quant/methods/gradual_bits.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using test::check_parity;
using test::random_images;

QConfig gradual(Estimator estimator) {
  QConfig config = QConfig::bits(2, 3);
  config.model.weight.first_bits = 8;
  config.model.activation.first_bits = 6;
  config.model.weight.estimator = estimator;
  config.model.activation.estimator = estimator;
  return config;
}

/// Bits of the first layer's weights and output, as a network converts.
std::vector<int> bits_of(Module& net, const Tensor& images) {
  const int weights = weight_quantizer(net, "0").params().type.bits;
  return {weights, test::step_output(convert(net, images), 0).params->type.bits};
}

}  // namespace

TEST_CASE("bits fall by one in every second epoch, and the network deploys with those it has",
          "[quant][methods]") {
  for (const Estimator estimator : {Estimator::kClamped, Estimator::kLearned}) {
    const QConfig config = gradual(estimator);
    CHECK(QConfig::from_json(config.to_json()) == config);
    manual_seed(1);
    const Tensor images = random_images({6, 8, 8, 1}, 2);
    Sequential layers = test::conv_net();
    Network net = trace(layers, images);
    prepare_qat(net, images, config);
    const auto begin_epoch = gradual_bits(net, 2);
    const std::vector<std::vector<int>> expected{{8, 6},
                                                 {8, 6},
                                                 {7, 5},
                                                 {7, 5},
                                                 {6, 4},
                                                 {6, 4},
                                                 {5, 3},
                                                 {5, 3},
                                                 {4, 3},
                                                 {4, 3},
                                                 {3, 3},
                                                 {3, 3},
                                                 {2, 3},
                                                 {2, 3},
                                                 {2, 3}};
    for (size_t epoch = 0; epoch < expected.size(); ++epoch) {
      CAPTURE(epoch);
      begin_epoch(static_cast<int64_t>(epoch));
      if (epoch == 7) begin_epoch(0);  // never up
      test::train_a_little(net, {6, 8, 8, 1}, 1);
      net.eval();
      CHECK(bits_of(net, images) == expected[epoch]);
      check_parity(net, convert(net, images), images);
      if (epoch == 5) {
        const quantrain::test::TemporaryFolder folder;
        save_network(net, folder / "net");
        Network again = load_network(folder / "net");
        again.eval();
        CHECK(convert(again, images).program() == convert(net, images).program());
        lower_bits(again, 100);
        CHECK(bits_of(again, images) == std::vector<int>{2, 3});
      }
    }
  }
}

TEST_CASE("a range stays when its bits fall", "[quant][methods]") {
  FakeQuantize slot({.type = {.bits = 2}, .observer = MinMaxOptions{}, .first_bits = 4});
  slot(Tensor::from({1, 2}, std::vector<float>{-1.0f, 2.0f}));
  CHECK(slot.params() == QParams{{.bits = 4}, -1, {0.2f}, {5}});
  slot.lower_bits(1);
  CHECK(slot.params() == QParams{{.bits = 3}, -1, {3.0f / 7.0f}, {2}});
  slot.lower_bits(9);
  slot.eval();
  // 3 bits held [-0.857, 2.143]; 2 bits have a code for each third.
  CHECK(slot.params() == QParams{{.bits = 2}, -1, {1.0f}, {1}});
  CHECK(quantrain::test::values(slot(Tensor::from({1, 2}, std::vector<float>{-1.0f, 1.6f}))) ==
        std::vector<float>{-1.0f, 2.0f});

  const Tensor w = Tensor::from({1, 2}, std::vector<float>{0.5f, -1.0f});
  WeightQuantizer weights(
      {.bits = 2, .estimator = Estimator::kLearned, .first_bits = 3}, {w, {}}, nullptr);
  Tensor scale = weights.parameters()[0];
  scale.mutable_data()[0] = 0.25f;  // codes -3 to 3
  weights.lower_bits(1);
  CHECK(scale.item() == static_cast<float>(0.25 * std::sqrt(3.0)));
  CHECK(weights.params().type.bits == 2);
}

TEST_CASE("learned scales grow with the root of the codes that fall away", "[quant][methods]") {
  FakeQuantize slot({.type = {.bits = 2},
                     .observer = MinMaxOptions{},
                     .estimator = Estimator::kLearnedOffset,
                     .first_bits = 4});
  slot(Tensor::from({1, 2}, std::vector<float>{-1.0f, 2.0f}));  // scale 0.2, zero point 5
  slot.lower_bits(2);
  // 0.2 sqrt(15 / 3) = 0.447; -1 is 2.24 codes below 0.
  CHECK(slot.params() ==
        QParams{{.bits = 2}, -1, {static_cast<float>(0.2f * std::sqrt(5.0))}, {2}});
  FakeQuantize pact({.type = {.bits = 2},
                     .observer = MinMaxOptions{},
                     .estimator = Estimator::kPact,
                     .first_bits = 4});
  pact(Tensor::from({1, 2}, std::vector<float>{0.0f, 3.0f}));
  pact.lower_bits(2);
  CHECK(pact.params() == QParams{{.bits = 2}, -1, {1.0f}, {0}});  // its end stays
}

TEST_CASE("first bits that do not fit, and networks without, are refused", "[quant][methods]") {
  const auto refused = [](const char* message, int weights, int activations) {
    QConfig config = QConfig::bits(4, 4);
    config.model.weight.first_bits = weights;
    config.model.activation.first_bits = activations;
    QUANTRAIN_CHECK_ERROR(validate(config), QuantError, message);
    QUANTRAIN_CHECK_ERROR(QConfig::from_json(config.to_json()), QuantError, message);
  };
  refused("[QConfig] model: first_bits is 4, expected 0 or more than bits, 4, and at most 8", 4, 0);
  refused("first_bits is 9", 9, 0);
  refused("first_bits is 3", 0, 3);
  refused("first_bits is -1", 0, -1);
  Sequential net = test::mlp();
  QUANTRAIN_CHECK_ERROR(gradual_bits(net), GraphError, "the network is not prepared");
  prepare_qat(net, random_images({4, 12}, 1), QConfig::int8());
  QUANTRAIN_CHECK_ERROR(gradual_bits(net), QuantError, "no weights or activations of the network");
  QUANTRAIN_CHECK_ERROR(lower_bits(net, 1), QuantError, "config.model.weight.first_bits = 8");
  QUANTRAIN_CHECK_ERROR(gradual_bits(net, 0), DataError, "epochs is 0, expected at least 1");
}

}  // namespace quantrain::quant
