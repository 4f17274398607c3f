// Rows of numbers instead of images: columns of different magnitudes, and raw values on a device.
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/data/coverage.hpp"
#include "framework/data/features.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "training.hpp"

struct Rows {
  std::vector<float> values;    // [N, 3]: pressure in Pa, temperature in degrees, vibration in g
  std::vector<int32_t> labels;  // 1: something is wrong
};

Rows measure(int64_t count, uint64_t seed) {
  Random random(seed);
  Rows rows;
  for (int64_t i = 0; i < count; ++i) {
    const float pressure = random.uniform(99e3f, 103e3f);
    const float temperature = random.uniform(15.0f, 95.0f);
    const float vibration = random.uniform(0.0f, 0.02f);
    rows.values.insert(rows.values.end(), {pressure, temperature, vibration});
    rows.labels.push_back(temperature / 80.0f + vibration / 0.016f > 1.25f ? 1 : 0);
  }
  return rows;
}

Dataset declared(const Rows& rows, Range range, const InputFeatures& features) {
  const auto count = static_cast<int64_t>(rows.labels.size());
  return Dataset::from_floats(
      {count, 3}, rows.values, rows.labels, 2, range, features, Outside::kSaturate);
}

/// The vibration twice: once for its usual values, once for rare peaks of 2 g.
void print_both_scales(const Rows& rows) {
  std::vector<float> values;  // [N, 4]
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    const float vibration = i % 300 == 0 ? 2.0f : rows.values[3 * i + 2];
    values.insert(values.end(), {rows.values[3 * i], rows.values[3 * i + 1], vibration, vibration});
  }
  InputFeatures features = fit_percentiles(values, 4);
  const Range range = percentile_range(values, features);
  const InputFeatures all = fit_min_max(values, 4);  // (x - offset) / scale lies in [0, 1]
  features.offset[3] = all.offset[3];
  features.scale[3] = all.scale[3] / range.max;
  std::cout << coverage(values, range, features, {"pressure", "temp", "vibration", "peaks"});
}

int main() try {
  const Rows training_rows = measure(2000, 1), test_rows = measure(500, 2);
  // Offsets, scales and range come from the training rows. Both data sets declare them.
  const InputFeatures features = fit_percentiles(training_rows.values, 3);
  const Range range = percentile_range(training_rows.values, features);
  std::cout << coverage(training_rows.values, range, features, {"pressure", "temp", "vibration"});
  print_both_scales(training_rows);
  const Dataset training_set = declared(training_rows, range, features);
  const Dataset test_set = declared(test_rows, range, features);

  manual_seed(1);
  Sequential net{Linear{3, 16}, Tanh{}, Linear{16, 2}};
  train(net, training_set, 6, 1e-2f);
  const Tensor example = test_set.batch(0, 1).input;
  quant::prepare_ptq(net, example, quant::QConfig::int8());
  quant::calibrate(net, DataLoader{training_set.first(500)});
  std::cout << "accuracy: " << accuracy(net, test_set) << '\n';

  // One raw row through the network.
  const std::vector<float> row{101e3f, 90.0f, 0.015f};
  net.eval();
  const SampleArray sample = SampleArray::encoded({1, 3}, row, range, features, Outside::kSaturate);
  const Tensor logits = net(sample.tensor(std::vector<int64_t>{0}));

  // The model stores offsets and scales, so a device passes raw sensor values.
  const quant::IntegerModel model = quant::convert(net, example);
  int32_t wrong = 0;
  model.classify(row, {&wrong, 1});
  const bool same = (logits.floats()[1] > logits.floats()[0]) == (wrong == 1);
  if (!same) throw QuantError("guide", "the classes differ");
  std::cout << "something is wrong: " << (wrong == 1 ? "yes" : "no") << '\n';
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
