// Freezing of oscillating weights, against tests/reference/make_training_methods.py.
#include "quant/methods/oscillation.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"
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
    REQUIRE(state.size() == 3 * 5);
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
    for (int64_t i = 0; i < code.size(); ++i) {
      if (frozen[i] != 0.0f) CHECK(static_cast<float>(deployed->s8()[i]) == code[i]);
    }
    for (const NamedState& entry : state)
      for (const float v : values(entry.tensor)) all.push_back(v);
    set_threads(0);
    return all;
  };
  CHECK(trained(1) == trained(2));
}

TEST_CASE("freezing of oscillating weights refuses what it cannot watch", "[quant][methods]") {
  Sequential net = test::mlp();
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(net), GraphError, "the network is not prepared");
  const Tensor images = random_images({4, 12}, 1);
  QConfig config = QConfig::bits(2, 4);
  config.layers["2"] = config.model;
  config.layers["2"].weight.function = Ternary{};
  prepare_qat(net, images, config);
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(net),
                        QuantError,
                        "the weights of \"2\" pass the weight function ternary");
  Sequential plain = test::mlp();
  prepare_qat(plain, images, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(plain, {.threshold = 1.0f}),
                        DataError,
                        "threshold is 1, expected at least 0 and less than 1");
  QUANTRAIN_CHECK_ERROR(OscillationFreezing(plain, {.momentum = 0.0f}),
                        DataError,
                        "momentum is 0, expected a number in (0, 1]");
  Sequential pool{AvgPool2d{2}};
  prepare_qat(pool, random_images({2, 4, 4, 1}, 1), QConfig::int8());
  QUANTRAIN_CHECK_ERROR(
      OscillationFreezing(pool), QuantError, "the network has no quantized weights");
}

}  // namespace quantrain::quant
