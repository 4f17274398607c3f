#include "quant/methods/gradual_bits.hpp"

#include <cmath>
#include <sstream>

#include "framework/core/error.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/state_bytes.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using quantrain::test::bytes_of;
using quantrain::test::values;
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
  CHECK(values(slot(Tensor::from({1, 2}, std::vector<float>{-1.0f, 1.6f}))) ==
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
  // 0.2 sqrt(15 / 3) = 0.447; the zero point is that of [-1, 2], so both ends shrink alike.
  CHECK(slot.params() ==
        QParams{{.bits = 2}, -1, {static_cast<float>(0.2f * std::sqrt(5.0))}, {1}});
  FakeQuantize pact({.type = {.bits = 2},
                     .observer = MinMaxOptions{},
                     .estimator = Estimator::kPact,
                     .first_bits = 4});
  pact(Tensor::from({1, 2}, std::vector<float>{0.0f, 3.0f}));
  pact.lower_bits(2);
  CHECK(pact.params() == QParams{{.bits = 2}, -1, {1.0f}, {0}});  // its end stays
}

TEST_CASE("learned ranges of values of both signs keep both ends as bits fall",
          "[quant][methods]") {
  // The range of 8 bits at scale 1/128.
  const Tensor x = Tensor::from({1, 2}, std::vector<float>{-1.0f, 127.0f / 128.0f});
  for (const Estimator estimator : {Estimator::kLearned, Estimator::kLearnedOffset}) {
    for (const bool is_signed : {false, true}) {
      CAPTURE(kEstimatorKinds.at(static_cast<size_t>(estimator)).name, is_signed);
      FakeQuantize slot({.type = {.bits = 4, .is_signed = is_signed},
                         .observer = MinMaxOptions{},
                         .estimator = estimator,
                         .first_bits = 8});
      slot(x);
      slot.eval();
      for (int by = 0; by <= 4; ++by) {
        CAPTURE(by);
        slot.lower_bits(by);
        const int bits = 8 - by;
        CHECK(slot.params().type.bits == bits);
        CHECK(slot.params().zero_point[0] == (is_signed ? 0 : 1 << (bits - 1)));
        const std::vector<float> y = values(slot(x));
        CHECK(y[0] < -0.2f);
        CHECK(y[1] > 0.2f);
      }
    }
  }
}

TEST_CASE("bits fall to 1 with zero point 0", "[quant][methods]") {
  for (const Estimator estimator : {Estimator::kClamped, Estimator::kLearned, Estimator::kPact}) {
    CAPTURE(kEstimatorKinds.at(static_cast<size_t>(estimator)).name);
    FakeQuantize slot({.type = {.bits = 1},
                       .observer = MinMaxOptions{},
                       .estimator = estimator,
                       .first_bits = 4});
    const Tensor x = Tensor::from({1, 2}, std::vector<float>{-1.0f, 2.0f});
    slot(x);
    slot.eval();
    slot.lower_bits(3);
    CHECK(slot.params().type.bits == 1);
    CHECK(slot.params().zero_point[0] == 0);
    // LSQ starts at 2 * 1.5 / sqrt(15) = 0.775, and ends at 3.
    const float scale = estimator == Estimator::kLearned ? 3.0f : 2.0f;
    CHECK(slot.params().scale[0] == Approx(scale).epsilon(1e-6));
    CHECK(values(slot(x)) == std::vector<float>{0.0f, slot.params().scale[0]});
  }
}

TEST_CASE("a range stays when bits fall between powers of two", "[quant][methods]") {
  const auto lowered = [](Estimator estimator, float low, float high) {
    FakeQuantize slot({.type = {.bits = 4},
                       .observer = MinMaxOptions{},
                       .estimator = estimator,
                       .power_of_two = true,
                       .first_bits = 8});
    slot(Tensor::from({1, 2}, std::vector<float>{low, high}));
    slot.eval();
    for (int by = 1; by <= 4; ++by) slot.lower_bits(by);
    return slot;
  };
  FakeQuantize pact = lowered(Estimator::kPact, 0.0f, 4.5f);
  CHECK(pact.parameters()[0].item() == Approx(4.5).epsilon(1e-5));
  CHECK(pact.params() == QParams{{.bits = 4}, -1, {0.5f}, {0}});  // 4.5 / 15 = 0.3
  // [-1.5, 3] in 4 bits has scale 0.3 and zero point 5; with 0.5, -1.5 is 3 codes below 0.
  CHECK(lowered(Estimator::kClamped, -1.5f, 3.0f).params() ==
        QParams{{.bits = 4}, -1, {0.5f}, {3}});
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

TEST_CASE("bits of a frozen network do not fall", "[quant][methods]") {
  manual_seed(1);
  const Tensor images = random_images({6, 8, 8, 1}, 2);
  Sequential net = test::conv_net();
  prepare_qat(net, images, gradual(Estimator::kLearned));
  test::train_a_little(net, {6, 8, 8, 1}, 1);
  lower_bits(net, 1);
  freeze(net);
  lower_bits(net, 1);  // nothing would change
  const std::string before = bytes_of(state(net));
  QUANTRAIN_CHECK_ERROR(
      lower_bits(net, 2), QuantError, "is frozen with 7 bits: lower its bits before freeze()");
  // Also if the first slots are not frozen, nothing changes.
  weight_quantizer(net, "0").set_phase(Phase::kTraining);
  QUANTRAIN_CHECK_ERROR(lower_bits(net, 2), QuantError, "is frozen with 7 bits");
  weight_quantizer(net, "0").set_phase(Phase::kFrozen);
  CHECK((bytes_of(state(net)) == before));
  QUANTRAIN_CHECK_ERROR(weight_quantizer(net, "0").lower_bits(2), QuantError, "[0] is frozen");
  QUANTRAIN_CHECK_ERROR(
      output_quantizer(net, "2").lower_bits(2), QuantError, "[2] is frozen with 5 bits");
  set_phase(net, Phase::kTraining);
  lower_bits(net, 2);
  net.eval();
  CHECK(bits_of(net, images) == std::vector<int>{6, 4});
}

TEST_CASE("bits fall on from those that a network has", "[quant][methods]") {
  const Tensor images = random_images({6, 8, 8, 1}, 2);
  Sequential net = test::conv_net();
  QUANTRAIN_CHECK_ERROR(bits_to_fall(net), GraphError, "the network is not prepared");
  prepare_qat(net, images, gradual(Estimator::kClamped));
  calibrate(net, images);
  CHECK(bits_to_fall(net) == 6);  // 8 -> 2; 6 -> 3 are fewer
  lower_bits(net, 4);
  CHECK(bits_to_fall(net) == 2);
  const auto begin_epoch = gradual_bits(net, 3);
  begin_epoch(0);
  CHECK(bits_of(net, images) == std::vector<int>{4, 3});
  begin_epoch(3);
  CHECK(bits_of(net, images) == std::vector<int>{3, 3});
  begin_epoch(6);
  CHECK(bits_of(net, images) == std::vector<int>{2, 3});
  CHECK(bits_to_fall(net) == 0);
  Sequential plain = test::conv_net();
  prepare_qat(plain, images, QConfig::int8());
  CHECK(bits_to_fall(plain) == 0);
}

TEST_CASE("bits of a network fall everywhere or nowhere", "[quant][methods]") {
  manual_seed(1);
  const Tensor images = random_images({6, 8, 8, 1}, 2);
  Sequential net = test::conv_net();
  prepare_qat(net, images, gradual(Estimator::kLearned));
  test::train_a_little(net, {6, 8, 8, 1}, 1);
  Tensor scale;  // of activations, which come after all weights
  for (const NamedState& entry : state(net)) {
    if (entry.name == "2.output_slot.scale") scale = entry.tensor;
  }
  REQUIRE(scale.defined());
  const float usual = scale.data()[0];
  scale.mutable_data()[0] = std::nanf("");
  const std::string before = bytes_of(state(net));
  QUANTRAIN_CHECK_ERROR(lower_bits(net, 2), DataError, "[2]");
  CHECK((bytes_of(state(net)) == before));
  scale.mutable_data()[0] = usual;
  lower_bits(net, 2);
  net.eval();
  CHECK(bits_of(net, images) == std::vector<int>{6, 4});
}

TEST_CASE("first bits that nothing lowers are refused or shown", "[quant][methods]") {
  const Tensor images = random_images({6, 8, 8, 1}, 2);
  const QConfig config = gradual(Estimator::kClamped);
  Sequential ptq = test::conv_net();
  QUANTRAIN_CHECK_ERROR(prepare_ptq(ptq, images, config),
                        QuantError,
                        "[0] first_bits are for training: leave them out, or use prepare_qat");
  CHECK_FALSE(ptq.find("0").has_filled_slot());

  Sequential net = test::conv_net();
  prepare_qat(net, images, config);
  const auto text = [&] {
    std::ostringstream stream;
    stream << plan(net, images);
    return stream.str();
  };
  CHECK(text().find("8 -> 2  6 -> 3") != std::string::npos);
  lower_bits(net, 1);
  CHECK(text().find("7 -> 2  5 -> 3") != std::string::npos);
  lower_bits(net, 9);
  CHECK(text().find("->") == std::string::npos);

  // Given parameters keep their bits.
  Sequential given{Linear{12, 4}};
  QConfig weights = QConfig::bits(4, 8);
  weights.model.weight.first_bits = 8;
  prepare_qat(given, random_images({4, 12}, 1), weights);
  lower_bits(given, 0);
  weight_quantizer(given, "0")
      .set_params({{8, true, true}, 0, std::vector<float>(4, 0.1f), std::vector<int32_t>(4, 0)});
  QUANTRAIN_CHECK_ERROR(
      lower_bits(given, 1), QuantError, "no weights or activations of the network have first_bits");
}

}  // namespace quantrain::quant
