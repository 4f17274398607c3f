#include "quant/prepare/methods/power_of_two.hpp"

#include <cmath>
#include <limits>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/quant/kept_network.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using test::check_kept;
using test::random_images;

QConfig powers(int bits) {
  QConfig config = QConfig::bits(bits, bits);
  config.model.weight.power_of_two = true;
  config.model.activation.power_of_two = true;
  return config;
}

bool is_power(float scale) {
  int exponent = 0;
  return std::frexp(scale, &exponent) == 0.5f;
}

}  // namespace

TEST_CASE("the next power of two keeps the range and real 0", "[quant][power_of_two]") {
  const QType u4{.bits = 4};
  const QType s4{.bits = 4, .is_signed = true};
  const auto affine = [](const ScaleZero& params, const QType& type) {
    return with_power_of_two(params, type, QScheme::kAffine);
  };
  // [-1.5, 3] with 16 codes of 0.3 and zero point 5: with 0.5, -1.5 is 3 codes below 0.
  CHECK(affine({0.3f, 5}, u4) == ScaleZero{0.5f, 3});
  CHECK(affine({0.5f, 5}, u4) == ScaleZero{0.5f, 5});
  CHECK(affine({0.50001f, 5}, u4) == ScaleZero{1.0f, 3});  // 2.50005 rounds up
  CHECK(affine({0.5f * 1.2f, 0}, u4) == ScaleZero{1.0f, 0});
  CHECK(affine({0.3f, 0}, s4) == ScaleZero{0.5f, -3});  // -2.4 is 4.8, so 5, codes below 0
  CHECK(with_power_of_two({0.3f, 8}, u4, QScheme::kSymmetric) == ScaleZero{0.5f, 8});
  CHECK(affine({0x1p-126f, 0}, u4) == ScaleZero{0x1p-126f, 0});
}

TEST_CASE("a scale that is not finite stays so, and a pass reports it", "[quant][power_of_two]") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const QScheme scheme : {QScheme::kAffine, QScheme::kSymmetric}) {
    const auto scale = [&](float value) {
      return with_power_of_two({value, 0}, {.bits = 4}, scheme).scale;
    };
    CHECK(std::isnan(scale(std::nanf(""))));
    CHECK(scale(infinity) == infinity);
    CHECK(scale(0x1.8p127f) == infinity);  // the next power of two is none
  }
  FakeQuantize slot({.type = {.bits = 4},
                     .observer = MinMaxOptions{},
                     .estimator = Estimator::kLearned,
                     .power_of_two = true});
  const Tensor x = Tensor::from({1, 2}, std::vector<float>{-1.0f, 2.0f});
  slot(x);
  for (const float value : {std::nanf(""), infinity}) {
    slot.parameters()[0].mutable_data()[0] = value;
    CHECK_THROWS_AS(slot(x), QuantError);
  }
}

TEST_CASE("values that are all 0 leave a learned scale between powers of two where it is",
          "[quant][power_of_two]") {
  const Tensor zeros = Tensor::zeros({1, 4});
  FakeQuantize slot({.type = {.bits = 4},
                     .observer = MinMaxOptions{},
                     .estimator = Estimator::kLearned,
                     .power_of_two = true});
  slot(Tensor::full({1, 4}, 1.0f));
  const auto stays = [](Tensor scale, const Tensor& y) {
    sum(y).backward();
    Sgd({scale}, {.learning_rate = 0.1f}).step();
    CHECK(scale.item() == 0.26f);
  };
  Tensor scale = slot.parameters()[0];
  scale.mutable_data()[0] = 0.26f;
  stays(scale, slot(zeros));

  WeightQuantizer weights(
      {.bits = 4, .estimator = Estimator::kLearned, .power_of_two = true}, {zeros, {}}, nullptr);
  scale = weights.parameters()[0];
  scale.mutable_data()[0] = 0.26f;
  stays(scale, weights.apply({zeros, {}}, Tensor::zeros({1, 4})).weight);
}

TEST_CASE("every scale of a network is a power of two, learned or not", "[quant][power_of_two]") {
  for (const Estimator estimator :
       {Estimator::kClamped, Estimator::kLearned, Estimator::kLearnedOffset, Estimator::kPact}) {
    CAPTURE(kEstimatorKinds.at(static_cast<size_t>(estimator)).name);
    QConfig config = powers(4);
    config.model.activation.estimator = estimator;
    if (estimator == Estimator::kLearned) config.model.weight.estimator = estimator;
    CHECK(QConfig::from_json(config.to_json()) == config);
    manual_seed(1);
    const Tensor images = random_images({6, 8, 8, 1}, 2);
    Sequential layers = test::conv_net();
    Network net = trace(layers, images);
    prepare_qat(net, images, config);
    test::train_a_little(net, {6, 8, 8, 1}, 3);
    int count = 0;
    for (const SlotRange& slot : ranges(net).slots) {
      if (slot.name == "input_slot") continue;
      for (const float scale : slot.params->scale) {
        CHECK(is_power(scale));
        ++count;
      }
    }
    CHECK(count == 6 + 5 + 4 + 2);
    check_kept(net, images);
  }
}

TEST_CASE("a state whose scales are powers of two is not that of others", "[quant][power_of_two]") {
  const quantrain::test::TemporaryFolder folder;
  const Tensor images = random_images({6, 12}, 2);
  const auto prepared = [&](const QConfig& config) {
    Sequential net = test::mlp();
    prepare_qat(net, images, config);
    return net;
  };
  Sequential net = prepared(powers(4));
  save(net, folder / "powers");
  Sequential other = prepared(QConfig::bits(4, 4));
  CHECK_THROWS_AS(load(other, folder / "powers"), Error);
  save(other, folder / "plain");
  QUANTRAIN_CHECK_ERROR(load(net, folder / "plain"), Error, "lacks \"0.weight_slot.power_of_two\"");
}

}  // namespace quantrain::quant
