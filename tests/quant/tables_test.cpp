// From a table to a deployed network: TensorDataset, splits, normalization and quantization.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "framework/autograd/ops.hpp"
#include "framework/core/file.hpp"
#include "framework/data/csv.hpp"
#include "framework/data/features.hpp"
#include "framework/data/loader.hpp"
#include "framework/data/splits.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant {
namespace {

/// Two columns whose ranges differ by six orders of magnitude, and a class that depends on both.
std::string sensors(int rows) {
  std::ostringstream text;
  text << "id,pressure,current,state\n";
  Random random(3);
  for (int i = 0; i < rows; ++i) {
    const float a = random.uniform(-1.0f, 1.0f);
    const float b = random.uniform(-1.0f, 1.0f);
    const bool fault = a + b > 0.3f;
    text << i << ',' << 100000.0f + 4000.0f * a << ',' << 0.02f + 0.01f * b << ','
         << (fault ? "fault" : "good") << '\n';
  }
  return text.str();
}

template <class Loss>
void train_table(Module& net, DataLoader loader, int epochs, const Loss& loss_of) {
  net.train();
  Adam optimizer(net.parameters(), {.learning_rate = 2e-2f});
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      Tensor loss = loss_of(batch);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
  }
}

}  // namespace

TEST_CASE("rows of a .csv train a network that takes raw values", "[quant][data]") {
  const quantrain::test::TemporaryFolder folder;
  write_file(folder / "sensors.csv", sensors(400));
  const CsvTable table = read_csv(folder / "sensors.csv");
  const std::vector<std::string> columns{"pressure", "current"};
  const std::vector<float> values = table.floats(columns);
  const TextClasses states = table.classes("state");
  const auto parts = stratified_indices(states.labels, 2, std::vector<double>{0.75, 0.25}, 1);

  const std::vector<float> train_rows = rows_at(values, 2, parts[0]);
  const InputFeatures features = fit_mean_std(train_rows, 2, {.names = columns});
  const TensorDataset all(SampleArray::encoded({table.rows(), 2},
                                               values,
                                               feature_range(train_rows, features),
                                               features,
                                               Outside::kSaturate),
                          Labels{states.labels, 2});
  const TensorDataset training = all.subset(parts[0]);
  const TensorDataset test = all.subset(parts[1]);

  manual_seed(1);
  Sequential net{Linear{2, 16}, ReLU{}, Linear{16, 2}};
  const auto loss = [&](const Batch& batch) {
    return cross_entropy(net(batch.input), batch.labels);
  };
  const DataLoader loader(training, {.batch = 32, .shuffle = true});
  train_table(net, loader, 20, loss);
  const Tensor example = test.batch(0, 1).input;
  prepare_qat(net, example, QConfig::int8());
  train_table(net, loader, 4, loss);
  const IntegerModel model = convert(net, example);
  const Parity parity = verify_parity(net, model, DataLoader(test));
  CHECK(parity.first_difference().empty());
  CHECK(parity.codes_from_floats_different == 0);

  model.save(folder / "model");
  const IntegerModel deployed = IntegerModel::load(folder / "model");
  CHECK(deployed.input_features() == features);
  const std::vector<float> raw = rows_at(values, 2, parts[1]);
  std::vector<int32_t> classes(parts[1].size());
  deployed.classify(std::span<const float>(raw), classes);
  int64_t correct = 0;
  for (size_t i = 0; i < classes.size(); ++i)
    correct += classes[i] == test.label(static_cast<int64_t>(i)) ? 1 : 0;
  CHECK(correct >= 95);
}

TEST_CASE("an autoencoder is trained on rows that are their own targets", "[quant][data]") {
  Random random(5);
  std::vector<float> rows;
  for (int i = 0; i < 256; ++i) {
    const float t = random.uniform(-1.0f, 1.0f);
    for (const float factor : {1.0f, -0.5f, 0.25f, 0.8f}) rows.push_back(factor * t);
  }
  const TensorDataset dataset(SampleArray::encoded({256, 4}, rows, {-1.0f, 1.0f}), SameAsInput{});
  manual_seed(1);
  Sequential net{Linear{4, 2}, Linear{2, 4}};
  const auto loss = [&](const Batch& batch) {
    return mse_loss(net(batch.input), batch.targets[0]);
  };
  const Batch all = dataset.batch(0, dataset.size());
  const float before = loss(all).item();
  const DataLoader loader(dataset, {.batch = 32, .shuffle = true});
  train_table(net, loader, 20, loss);
  prepare_qat(net, all.input, QConfig::int8());
  train_table(net, loader, 4, loss);
  CHECK(loss(all).item() < 0.02f * before);
  const IntegerModel model = convert(net, all.input);
  CHECK(verify_parity(net, model, loader).first_difference().empty());
}

TEST_CASE("a network of several inputs is calibrated and compared on batches", "[quant][data]") {
  Random random(7);
  std::vector<uint8_t> bytes(40 * 6);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  std::vector<uint8_t> others(40 * 6);
  for (uint8_t& byte : others) byte = static_cast<uint8_t>(random.below(256));
  const TensorDataset dataset(
      std::vector<SampleArray>{SampleArray::bytes({40, 6}, bytes),
                               SampleArray::bytes({40, 6}, others, {-1.0f, 1.0f})},
      Targets{});
  Add net;
  const std::vector<Tensor> example = dataset.batch(0, 1).inputs();
  prepare_ptq(net, example, QConfig::int8());
  const DataLoader loader(dataset, {.batch = 16});
  calibrate(net, loader);
  const IntegerModel model = convert(net, example);
  const Parity parity = verify_parity(net, model, loader);
  CHECK(parity.images == 40);
  CHECK(parity.first_difference().empty());
}

}  // namespace quantrain::quant
