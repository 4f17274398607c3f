#include <limits>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "framework/data/loader.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/training/fit.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

/// A regression, prepared, whose weights explode with a learning rate of 1. The ranges of its
/// activations follow slowly, so integers refuse the sums while they are finite.
struct Exploding {
  Sequential net;
  Dataset data;

  Exploding() : net(make()), data(rows()) {
    QConfig config = QConfig::int8();
    config.model.activation.observer = MovingAverageOptions{};
    prepare_qat(net, data.batch(0, 12).input, config);
  }
  static Sequential make() {
    manual_seed(1);
    return Sequential{Linear{64, 16}, ReLU{}, Linear{16, 16}, ReLU{}, Linear{16, 1}};
  }
  static Dataset rows() {
    Random random(1);
    std::vector<uint8_t> bytes(120 * 64);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
    std::vector<int32_t> labels(120);
    for (int32_t& label : labels) label = static_cast<int32_t>(random.below(4));
    return Dataset({120, 64}, bytes, labels, 4);
  }
  Tensor loss(Batch& batch) {
    const std::vector<float> targets(batch.labels.begin(), batch.labels.end());
    return mse_loss(net(batch.input), Tensor::from({batch.size(), 1}, targets));
  }
};

}  // namespace

TEST_CASE("fit reports divergence of a prepared network as divergence", "[quant][divergence]") {
  Exploding it;
  Sgd optimizer(it.net.parameters(), {.learning_rate = 1.0f});
  DataLoader loader(it.data, {.batch = 12});
  const auto run = [&] {
    fit(it.net, optimizer, loader, [&](Batch& batch) { return it.loss(batch); }, {.epochs = 5});
  };
  // The weights are finite, but the sums of a layer no longer fit the range of its output.
  QUANTRAIN_CHECK_ERROR(run(), DataError, "[fit] training diverged by step ");
}

TEST_CASE("in a loop of one's own, the message names the layer and the learning rate",
          "[quant][divergence]") {
  Exploding it;
  Sgd optimizer(it.net.parameters(), {.learning_rate = 1.0f});
  const auto run = [&] {
    for (int step = 0; step < 50; ++step) {
      Batch batch = it.data.batch(step % 10 * 12, step % 10 * 12 + 12);
      optimizer.zero_grad();
      it.loss(batch).backward();
      optimizer.step();
    }
  };
  QUANTRAIN_CHECK_ERROR(
      run(), QuantError, "grow beyond bounds cause this: lower the learning rate");
}

TEST_CASE("weights that are not finite are reported with their layer and the learning rate",
          "[quant][divergence]") {
  Exploding it;
  Batch batch = it.data.batch(0, 12);
  it.net(batch.input);
  Tensor weight = it.net.parameters()[0];
  weight.mutable_data()[3] = std::numeric_limits<float>::infinity();
  QUANTRAIN_CHECK_ERROR(it.net(batch.input),
                        DataError,
                        "[0] the weights or the bias hold a NaN or an infinity: max|w| inf");
}

TEST_CASE("an error that divergence does not explain stays as it is", "[quant][divergence]") {
  Exploding it;
  Sgd optimizer(it.net.parameters(), {.learning_rate = 1e-3f});
  DataLoader loader(it.data, {.batch = 12});
  const auto run = [&] {
    const auto loss = [&, step = 0](Batch& batch) mutable {
      if (step++ == 3) throw QuantError("mine", "a rule");
      return it.loss(batch);
    };
    fit(it.net, optimizer, loader, loss, {.epochs = 5});
  };
  QUANTRAIN_CHECK_ERROR(run(), QuantError, "[mine] a rule");
}

}  // namespace quantrain::quant
