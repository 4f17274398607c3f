// Freezing of oscillating weights, against tests/reference/make_training_methods.py.
#include "quant/methods/oscillation.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/gradual_bits.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Json;
using quantrain::test::values;
using test::check_parity;
using test::random_images;

}  // namespace

TEST_CASE("weights that oscillate are frozen at the steps and codes of the published algorithm",
          "[quant][methods][vectors]") {
  for (const Json& json : quantrain::test::load_vectors("oscillation", "training_methods.json")) {
    const auto start = json.at("start").get<std::vector<float>>();
    const auto n = static_cast<int64_t>(start.size());
    Sequential net{Linear{n, 1}};
    Tensor weight = net.parameters()[0];
    const auto set = [&](const std::vector<float>& w) {
      std::copy(w.begin(), w.end(), weight.mutable_data());
    };
    set(start);
    prepare_qat(net, random_images({2, n}, 1), QConfig::bits(3, 8));
    // Scale 1: what the vectors call codes are codes.
    weight_quantizer(net, "0").set_params({{3, true, true}, 0, {1.0f}, {0}});
    OscillationFreezing freezing(net,
                                 {.threshold = json.at("threshold").get<float>(),
                                  .momentum = json.at("momentum").get<float>()});
    CHECK(freezing.weights() == n);
    const auto after_step = freezing.after_step();
    const auto walk = json.at("walk").get<std::vector<std::vector<float>>>();
    const auto frozen = json.at("frozen").get<std::vector<std::vector<float>>>();
    for (size_t step = 0; step < walk.size(); ++step) {
      CAPTURE(step);
      set(walk[step]);  // as an optimizer would, also for weights that are frozen
      after_step(static_cast<int64_t>(step), 0.0f);
      int64_t count = 0;
      for (size_t i = 0; i < start.size(); ++i) {
        const bool is_frozen = frozen[step][i] != 9.0f;
        count += is_frozen ? 1 : 0;
        CHECK(weight.data()[i] == (is_frozen ? frozen[step][i] : walk[step][i]));
      }
      CHECK(freezing.frozen() == count);
    }
    CHECK(freezing.frozen() > 0);
  }
}

TEST_CASE("frozen weights keep their codes through training, batch norm and conversion",
          "[quant][methods]") {
  const auto trained = [](int threads) {
    set_threads(threads);
    manual_seed(3);
    Sequential net = test::conv_net();
    const Tensor images = random_images({6, 8, 8, 1}, 2);
    QConfig config = QConfig::bits(3, 4);
    config.model.weight.estimator = Estimator::kLearned;
    prepare_qat(net, images, config);
    OscillationFreezing freezing(net, {.threshold = 0.0f, .momentum = 0.5f});
    std::vector<float> all;
    for (int step = 0; step < 24; ++step) {
      test::train_a_little(net, {6, 8, 8, 1}, 1 + step % 2);
      freezing.step();
    }
    REQUIRE(freezing.frozen() > 0);
    const std::vector<NamedState> state = freezing.state();
    REQUIRE(state.size() == 3 * 6);
    CHECK(state[0].name == "oscillation.0.code");
    net.eval();
    const IntegerModel model = convert(net, images);
    check_parity(net, model, images);
    const Floats code = state[0].tensor.floats();
    const Floats frozen = state[4].tensor.floats();
    const Graph graph = deployed_pass(net, {images});
    const auto first =
        std::find_if(graph.nodes().begin(), graph.nodes().end(), [](const GraphNode& node) {
          return node.scope() == "0" && node.node->traits().weight == 1;
        });
    REQUIRE(first != graph.nodes().end());
    const std::shared_ptr<const Codes> deployed = first->inputs[1].codes();
    int64_t count = 0;
    for (int64_t i = 0; i < code.size(); ++i) {
      if (frozen[i] == 0.0f) continue;
      CHECK(static_cast<float>(deployed->s8()[i]) == code[i]);
      ++count;
    }
    REQUIRE(count > 0);
    for (const NamedState& entry : state)
      for (const float v : values(entry)) all.push_back(v);
    set_threads(0);
    return all;
  };
  CHECK(trained(1) == trained(quantrain::test::thread_counts({1, 2}).back()));
}

TEST_CASE("weights of 1 bit are frozen at a sign", "[quant][methods]") {
  // Means 1, 0, 0.5 and -1, 0, -0.5: rounded, both are 0, which is no code.
  Linear layer{3, 1};
  Tensor weight = layer.parameters()[0];
  quantrain::test::set(weight, {0.1f, -0.1f, 0.25f});
  Sequential net{std::move(layer)};
  prepare_qat(net, random_images({2, 3}, 1), QConfig::bits(1, 8));
  weight_quantizer(net, "0").set_params({{1, true, true}, 0, {0.5f}, {0}});
  OscillationFreezing freezing(net, {.threshold = 0.3f, .momentum = 0.5f});
  for (const float side : {-0.1f, 0.1f}) {
    quantrain::test::set(weight, {side, -side, 0.25f});
    freezing.step();
  }
  CHECK(values(weight) == std::vector<float>{0.5f, -0.5f, 0.25f});
  CHECK(freezing.frozen() == 2);
  CHECK(values(freezing.state()[0]) == std::vector<float>{1.0f, -1.0f, 1.0f});
}

TEST_CASE("codes are read anew when the bits of the weights fall", "[quant][methods]") {
  Linear layer{3, 1};
  Tensor weight = layer.parameters()[0];
  Sequential net{std::move(layer)};
  QConfig config = QConfig::bits(3, 8);
  config.model.weight.estimator = Estimator::kLearned;
  config.model.weight.first_bits = 4;
  prepare_qat(net, random_images({2, 3}, 1), config);
  quantrain::test::set(weight_quantizer(net, "0").parameters()[0], {0.25f});
  quantrain::test::set(weight, {1.25f, 0.5f, 0.75f});  // codes 5, 2 and 3
  OscillationFreezing freezing(net, {.threshold = 0.3f, .momentum = 0.5f});
  for (const float up : {0.25f, 0.0f}) {
    quantrain::test::set(weight, {1.25f + up, 0.5f, 0.75f + up});
    freezing.step();
  }
  REQUIRE(freezing.frozen() == 2);
  CHECK(values(freezing.state()[0]) == std::vector<float>{5.0f, 2.0f, 3.0f});
  lower_bits(net, 1);
  freezing.step();
  // The scale is 0.25 sqrt(7 / 3) = 0.382: the values are 3.27, 1.31 and 1.96 steps.
  const float scale = weight_quantizer(net, "0").params().scale[0];
  const std::vector<NamedState> state = freezing.state();
  CHECK(values(state[0]) == std::vector<float>{3.0f, 1.0f, 2.0f});  // code
  CHECK(values(state[1]) == std::vector<float>(3, 0.0f));           // direction
  CHECK(values(state[2]) == std::vector<float>(3, 0.0f));           // frequency
  CHECK(values(state[3]) == std::vector<float>{3.0f, 1.0f, 2.0f});  // mean
  CHECK(values(weight) == std::vector<float>{3.0f * scale, 0.5f, 2.0f * scale});
  CHECK(state[5].name == "oscillation.0.bits");
  CHECK(values(state[5]) == std::vector<float>{3.0f});
  CHECK(freezing.frozen() == 2);
}

TEST_CASE("a frozen weight stays finite whatever the factor of its batch norm",
          "[quant][methods]") {
  Linear layer{2, 1};
  BatchNorm1d norm{1};
  Tensor weight = layer.parameters()[0];
  Tensor gamma = norm.named_parameters()[0].tensor;
  Sequential net{std::move(layer), std::move(norm)};
  QConfig config = QConfig::bits(3, 8);
  config.model.weight.estimator = Estimator::kLearned;
  prepare_qat(net, random_images({4, 2}, 1), config);
  quantrain::test::set(weight_quantizer(net, "0").parameters()[0], {0.25f});
  quantrain::test::set(weight, {0.25f, 0.5f});
  OscillationFreezing freezing(net, {.threshold = 0.3f, .momentum = 0.5f});
  for (const float w : {0.5f, 0.25f}) {
    quantrain::test::set(weight, {w, 0.5f});
    freezing.step();
  }
  REQUIRE(freezing.frozen() == 1);
  quantrain::test::set(gamma, {0.0f});  // counts as 1e-5
  quantrain::test::set(weight_quantizer(net, "0").parameters()[0], {1e35f});
  quantrain::test::set(weight, {0.375f, 0.5f});
  freezing.step();
  CHECK(values(weight) == std::vector<float>{0.375f, 0.5f});
}

TEST_CASE("freezing of oscillating weights refuses what it cannot watch", "[quant][methods]") {
  Sequential net = test::mlp();
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(net), GraphError, "the network is not prepared");
  const Tensor images = random_images({4, 12}, 1);
  QConfig config = QConfig::bits(2, 4);
  config.layers["2"] = config.model;
  config.layers["2"].weight.function = Ternary{};
  config.model.weight.estimator = Estimator::kLearned;
  prepare_qat(net, images, config);
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(net),
                        QuantError,
                        "the weights of \"2\" cannot be frozen: its weights pass the weight "
                        "function ternary");
  Linear first{12, 12};
  Linear second{first.weight(), first.bias()};
  Sequential shared{std::move(first), ReLU{}, std::move(second)};
  config.layers.clear();
  prepare_qat(shared, images, config);
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(shared),
                        QuantError,
                        "the weights of \"0\" cannot be frozen: \"2\" shares its weight");
  Sequential plain = test::mlp();
  prepare_qat(plain, images, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(plain, {.threshold = 1.0f}),
                        DataError,
                        "threshold is 1, expected at least 0 and less than 1");
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(plain, {.momentum = 0.0f}),
                        DataError,
                        "momentum is 0, expected a number in (0, 1]");
  // Such scales shrink as weights are frozen below them.
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(plain),
                        QuantError,
                        "the scales of \"0\" follow from its weights, which freezing moves: set "
                        "weight.estimator = Estimator::kLearned");
  Sequential pool{AvgPool2d{2}};
  prepare_qat(pool, random_images({2, 4, 4, 1}, 1), QConfig::int8());
  QUANTRAIN_CHECK_ERROR(
      OscillationFreezing(pool), QuantError, "the network has no quantized weights");
}

}  // namespace quantrain::quant
