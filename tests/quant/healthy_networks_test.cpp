#include <sstream>
#include <vector>

#include "examples/networks.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/data/loader.hpp"
#include "framework/optim/adam.hpp"
#include "layers/training/fit.hpp"
#include "quant/analysis/diagnose.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"

namespace quantrain::quant {
namespace {

/// Ten classes: class c is a bright square at one of ten positions, plus noise.
Dataset squares(int64_t count, uint64_t seed) {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    Random random(seed, static_cast<uint64_t>(i));
    const int64_t label = random.below(10);
    for (int64_t pixel = 0; pixel < 28 * 28; ++pixel) {
      const int64_t y = pixel / 28 - 2 - label / 4 * 9;
      const int64_t x = pixel % 28 - 1 - label % 4 * 7;
      const bool inside = y >= 0 && y < 6 && x >= 0 && x < 6;
      images.push_back(static_cast<uint8_t>(random.below(inside ? 256 : 32)));
    }
    labels.push_back(static_cast<int32_t>(label));
  }
  return Dataset({count, 28, 28, 1}, images, labels, 10);
}

}  // namespace

TEST_CASE("the doctor has no finding in healthy networks", "[quant][doctor][long]") {
  const bool trains = GENERATE(true, false);
  for (const examples::Network& network : examples::networks()) {
    INFO(network.name << (trains ? ", QAT" : ", PTQ"));
    manual_seed(3);
    Sequential net = network.make();
    DataLoader data{squares(128, 1), {.batch = 32, .shuffle = true}};
    const auto loss = [&](Batch& batch) {
      return cross_entropy(net(std::move(batch.input)), batch.labels);
    };
    Adam optimizer(net.parameters(), {.learning_rate = 1e-3f});
    fit(net, optimizer, data, loss, {.epochs = 2});
    const Tensor example = squares(1, 2).batch(0, 1).input;
    if (trains) {
      prepare_qat(net, example, QConfig::int8());
      Adam more(net.parameters(), {.learning_rate = 1e-4f});
      fit(net, more, data, loss, {.epochs = 1});
      freeze(net);
    } else {
      prepare_ptq(net, example, QConfig::int8());
      calibrate(net, data);
    }
    const Diagnosis diagnosis = diagnose(net, DataLoader{squares(64, 5), {.batch = 32}});
    std::ostringstream text;
    text << diagnosis;
    INFO(text.str());
    CHECK(diagnosis.findings.empty());
    CHECK(diagnosis.integers_different == 0);
    CHECK(diagnosis.classes->integers.accuracy() >= diagnosis.classes->floats.accuracy() - 0.05);
  }
}

}  // namespace quantrain::quant
