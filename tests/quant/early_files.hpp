#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/autograd/parameters.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/averaging.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/quant/networks.hpp"

// The files in tests/reference/early were written by write_files() when states held integers as
// floats (the commit dcff8173, where quant/prepare was quant/training).
namespace quantrain::quant::test {

constexpr int64_t kEarlySteps = 3;  // of training before each file is written

inline Tensor early_images() { return random_images({4, 6, 6, 1}, 5); }

inline Sequential early_network() {
  manual_seed(3);
  return Sequential{Conv2d{1, 3, {.kernel = 3}},
                    BatchNorm2d{3},
                    ReLU{},
                    Dropout{0.25f},
                    Flatten{},
                    Linear{48, 4}};
}

/// A histogram, given weights and learned scales. The output layer's weights have one scale, as in
/// early versions.
inline void prepare_early(Sequential& net) {
  QConfig config = QConfig::int8();
  config.layers["0"] = config.layers["5"] = config.model;
  config.layers["0"].activation.observer = HistogramOptions{.bins = 64};
  config.layers["5"].weight.estimator = Estimator::kLearned;
  config.layers["5"].weight.per_channel = false;
  prepare_qat(net, early_images(), config);
  weight_quantizer(net, "0").set_params(
      {{.bits = 8, .is_signed = true, .narrow = true}, 0, {0.01f, 0.02f, 0.03f}, {0, 0, 0}});
}

inline void train_early(Sequential& net) {
  Adam optimizer(net.parameters(), {.learning_rate = 0.01f});
  for (int64_t i = 0; i < kEarlySteps; ++i) {
    optimizer.zero_grad();
    cross_entropy(net(early_images()), std::vector<int32_t>{0, 1, 2, 3}).backward();
    optimizer.step();
  }
}

/// Two epochs of three steps, with checkpoints in this folder. If interrupted is set, the process
/// ends as if it was killed in the fifth step.
struct EarlyRun {
  Sequential net = prepared();
  Adam optimizer{net.parameters(), {.learning_rate = 0.01f}};
  ExponentialAverage average{net.parameters(), {.decay = 0.5f}};

  static Sequential prepared() {
    Sequential net = early_network();
    prepare_early(net);
    return net;
  }
  FitResult run(const std::string& folder, bool interrupted) {
    std::vector<uint8_t> bytes(12 * 36);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i % 251);
    DataLoader loader(Dataset({12, 6, 6, 1}, bytes, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, 4),
                      {.batch = 4});
    return fit(net,
               optimizer,
               loader,
               [&](Batch& batch) { return cross_entropy(net(batch.input), batch.labels); },
               {.epochs = 2,
                .evaluate =
                    [] {
                      return Metrics{{"accuracy", 0.5}};
                    },
                .after_step =
                    [&](int64_t step, float) {
                      if (interrupted && step == 5) throw std::runtime_error("killed");
                      average.update();
                    },
                .early_stopping = {.metric = "accuracy", .smaller_is_better = false},
                .checkpoints = {.folder = folder, .every = 1, .keep = 1, .resume = true},
                .also = average.state()});
  }
};

/// Writes a file of each kind, and what the networks in them compute.
inline void write_files(const std::string& folder) {
  TensorFile expected;
  const auto expect = [&](const char* name, Sequential& net) {
    const NoGrad no_grad;
    const Tensor y = net(early_images());
    expected.add<float>(name, y.shape(), span_of(y));
  };
  Sequential net = early_network();
  train_early(net);
  net.eval();
  save(net, folder + "/float.safetensors", {{"steps", "3"}});
  expect("float", net);

  net.train();
  prepare_early(net);
  train_early(net);
  freeze(net);
  net.eval();
  save(net, folder + "/prepared.safetensors");
  expect("prepared", net);
  convert(net, early_images()).save(folder + "/model.safetensors");
  save_safetensors(folder + "/expected.safetensors", expected);

  try {
    EarlyRun().run(folder + "/run", true);
  } catch (const std::runtime_error&) {  // killed
  }
}

}  // namespace quantrain::quant::test
