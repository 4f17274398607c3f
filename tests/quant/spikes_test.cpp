// Rare spikes in the input: a rare class must not be lost to the codes of the input's range.
#include <cmath>

#include "framework/autograd/ops.hpp"
#include "framework/data/coverage.hpp"
#include "framework/data/features.hpp"
#include "framework/data/loader.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/init.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"

namespace quantrain::quant {
namespace {

constexpr int64_t kRows = 3000;
constexpr int32_t kRare = 1;

/// Rows of two sensors. The rare class, 5 % of the rows, is above 1.6 deviations of sensor 0. In
/// one row of 1000, sensor 0 shows a spike of 100 deviations.
struct Rows {
  std::vector<float> values;
  std::vector<int32_t> labels;

  explicit Rows(uint64_t seed) {
    Random random(seed);
    for (int64_t i = 0; i < kRows; ++i) {
      float a = random.normal();
      const float b = random.normal();
      labels.push_back(a > 1.6f ? kRare : 0);
      if (i % 1000 == 500) a = i % 2000 == 500 ? 100.0f : -100.0f;
      values.insert(values.end(), {40.0f + 3.0f * a, 1e5f + 2e3f * b});
    }
  }
};

Sequential trained(const BatchSource& data) {
  manual_seed(5);
  Sequential net{Linear{2, 24}, ReLU{}, Linear{24, 2}};
  constexpr float kRate = 2e-2f;
  constexpr int64_t kManyEpochs = 20;
  const std::shared_ptr<const BatchSource> source(&data, [](const BatchSource*) {});
  DataLoader loader(source, {.batch = 50, .shuffle = true, .seed = 1});
  Adam optimizer(net.parameters(), {.learning_rate = kRate});
  const Schedule schedule = cosine_schedule(kRate, {.steps = kManyEpochs * loader.batches()});
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < kManyEpochs; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      optimizer.set_learning_rate(schedule(step++));
      Tensor loss = cross_entropy(net(batch.input), batch.labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
  }
  net.eval();
  return net;
}

double recall(Module& net, const Batch& batch) {
  const NoGrad no_grad;
  ConfusionMatrix matrix(2);
  matrix.add(net(batch.input), batch.labels);
  return matrix.recall(kRare);
}

}  // namespace

TEST_CASE("the recommended range keeps a rare class although the input has spikes",
          "[quant][data][features][long]") {
  const Rows training(1), test(2);
  const auto encoded = [&](const Rows& rows, Range range, const InputFeatures& features) {
    return Dataset::from_floats(
        {kRows, 2}, rows.values, rows.labels, 2, range, features, Outside::kSaturate);
  };

  // What true floats reach.
  const InputFeatures features = fit_percentiles(training.values, 2);
  const auto floats = [&](const Rows& rows) {
    return TensorDataset(SampleArray::floats({kRows, 2}, scaled(rows.values, features)),
                         Labels{rows.labels, 2});
  };
  Sequential float_net = trained(floats(training));
  const double of_floats = recall(float_net, floats(test).batch(0, kRows));
  CHECK(of_floats > 0.85);

  // The extremes as range: most values share a few codes, and the rare class is lost. Training on
  // the codes cannot show it; coverage() does.
  {
    const InputFeatures wide = fit_mean_std(training.values, 2);
    const Range range = feature_range(training.values, wide);
    const InputCoverage seen = coverage(training.values, range, wide);
    CHECK(seen.features[0].codes < 12);
    CHECK(seen.warnings().size() == 1);
    Sequential net = trained(encoded(training, range, wide));
    CHECK(recall(net, encoded(test, range, wide).batch(0, kRows)) < of_floats - 0.2);
  }

  const Range range = percentile_range(training.values, features);
  const InputCoverage seen = coverage(training.values, range, features);
  CHECK(seen.features[0].codes > 100);
  CHECK(seen.features[0].saturated == 3.0 / kRows);
  CHECK(seen.warnings().empty());
  const Dataset data = encoded(training, range, features);
  CHECK(data.saturated() == 3);
  Sequential net = trained(data);
  CHECK(recall(net, encoded(test, range, features).batch(0, kRows)) > of_floats - 0.05);

  // And so do the integers, from raw values.
  const Tensor example = data.batch(0, 1).input;
  prepare_ptq(net, example, QConfig::int8());
  calibrate(net, DataLoader(data, {.batch = 500}));
  const IntegerModel model = convert(net, example);
  std::vector<int32_t> classes(kRows);
  CHECK(model.classify(test.values, classes) == 3);
  ConfusionMatrix matrix(2);
  matrix.add(classes, test.labels);
  CHECK(matrix.recall(kRare) > of_floats - 0.05);
}

}  // namespace quantrain::quant
