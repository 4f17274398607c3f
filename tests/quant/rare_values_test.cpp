// What is rare in the data stays in the ranges that training and calibration choose.
#include <algorithm>
#include <cmath>

#include "framework/autograd/ops.hpp"
#include "framework/data/loader.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::values;

/// y = x, with an output of 8 bits.
Sequential identity() {
  Sequential net{Linear{1, 1}};
  quantrain::test::set(net.find("0").parameters()[0], {1.0f});
  quantrain::test::set(net.find("0").parameters()[1], {0.0f});
  return net;
}

QConfig eight_bits() {
  QConfig config = QConfig::int8();
  config.output_bits = 8;
  config.input_range = {{0.0f, 1.0f}};
  return config;
}

/// 64 samples: one is 1, the others lie in [0, 0.1).
DataLoader one_large_sample() {
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 10);
  x[20] = 1.0f;
  return DataLoader(TensorDataset(SampleArray::encoded({64, 1}, x, {0.0f, 1.0f}), {}),
                    {.batch = 8, .shuffle = true, .seed = 3});
}

/// Passes in training mode, as with learning rate 0.
void train_without_steps(Module& net, DataLoader loader, int64_t epochs) {
  net.train();
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) net(batch.input);
  }
  net.eval();
}

float at_one(Module& net) { return values(net(Tensor::full({1, 1}, 1.0f)))[0]; }

/// 2 inputs in [-0.1, 0.1] and a target of up to 1; of every 64 samples, one is ten times larger.
TensorDataset steps(int64_t samples, uint64_t seed, bool only_rare) {
  std::vector<float> x;
  std::vector<float> y;
  for (int64_t i = 0; i < samples; ++i) {
    Random random(seed, 0, static_cast<uint64_t>(i));
    const float size = only_rare || i % 64 == 0 ? 1.0f : 0.1f;
    const float a = size * random.uniform(-1.0f, 1.0f);
    const float b = size * random.uniform(-1.0f, 1.0f);
    x.insert(x.end(), {a, b});
    y.push_back(6.0f * std::abs(a) - 4.0f * b);
  }
  return {SampleArray::encoded({samples, 2}, x, {-1.0f, 1.0f}),
          SampleArray::floats({samples, 1}, std::move(y))};
}

void train_steps(Module& net, const TensorDataset& data, int64_t epochs, float rate) {
  DataLoader loader(data, {.batch = 32, .shuffle = true, .seed = 1});
  Adam optimizer(net.parameters(), {.learning_rate = rate});
  fit(net,
      optimizer,
      loader,
      [&](Batch& batch) { return mse_loss(net(batch.input), batch.targets[0]); },
      {.epochs = epochs, .schedule = cosine_schedule(rate, {.steps = epochs * loader.batches()})});
}

double rmse(Module& net, const TensorDataset& data) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  const Batch batch = *DataLoader(data, {.batch = data.size()}).begin();
  return std::sqrt(mean_squared_error(net(batch.input), batch.targets[0]));
}

}  // namespace

TEST_CASE("training with the default range covers a value that one batch of each epoch holds",
          "[quant][rare]") {
  Sequential net = identity();
  const DataLoader loader = one_large_sample();
  prepare_qat(net, (*loader.begin()).input, eight_bits());
  train_without_steps(net, loader, 10);
  CHECK(at_one(net) == quantrain::test::Approx(1.0).epsilon(0.02));
}

TEST_CASE("a moving average cuts a rare value off, and calibrate covers it afterwards",
          "[quant][rare]") {
  Sequential net = identity();
  const DataLoader loader = one_large_sample();
  QConfig config = eight_bits();
  config.model.activation.observer = MovingAverageOptions{};
  prepare_qat(net, (*loader.begin()).input, config);
  train_without_steps(net, loader, 10);
  CHECK(at_one(net) < 0.5f);
  calibrate(net, (*DataLoader(loader.source(), {.batch = 64}).begin()).input);
  CHECK(at_one(net) == quantrain::test::Approx(1.0).epsilon(0.02));
}

TEST_CASE("a regression keeps its rare samples, ten times larger, in QAT as in PTQ",
          "[quant][rare][long]") {
  const TensorDataset data = steps(1024, 1, false);
  const TensorDataset rare = steps(256, 2, true);
  const auto make = [] {
    manual_seed(3);
    const Linear::Options plain{.bias = false};  // 10 x gives 10 y
    return Sequential{
        Linear{2, 16, plain}, ReLU{}, Linear{16, 16, plain}, ReLU{}, Linear{16, 1, plain}};
  };
  Sequential net = make();
  train_steps(net, data, 40, 1e-2f);
  const double in_float = rmse(net, rare);
  CHECK(in_float < 0.3);
  const Tensor example = data.batch(0, 1).input;
  Sequential ptq = make();
  copy_state(net, ptq);
  prepare_ptq(ptq, example, QConfig::int8());
  calibrate(ptq, DataLoader(data, {.batch = 32}));
  Sequential qat = make();
  copy_state(net, qat);
  prepare_qat(qat, example, QConfig::int8());
  train_steps(qat, data, 5, 1e-3f);
  const double after_ptq = rmse(ptq, rare);
  const double after_qat = rmse(qat, rare);
  CAPTURE(in_float, after_ptq, after_qat);
  CHECK(after_ptq < 1.5 * in_float);
  CHECK(after_qat < 1.2 * after_ptq);
}

}  // namespace quantrain::quant
