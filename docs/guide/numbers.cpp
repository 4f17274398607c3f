// Numbers as targets, and a network with two inputs.
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "layers/training/fit.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/training/prepare.hpp"
#include "training.hpp"

/// A motor's vibration, and its speed and load. The target is the wear, a number.
TensorDataset motors(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> vibration, settings, wear;
  for (int64_t i = 0; i < count; ++i) {
    const float amplitude = random.uniform(0.1f, 0.8f), rpm = random.uniform(500.0f, 3000.0f);
    const float load = random.uniform(0.0f, 1.0f);
    for (int t = 0; t < 32; ++t)
      vibration.push_back(amplitude * (t % 4 < 2 ? 1.0f : -1.0f) + random.uniform(-0.1f, 0.1f));
    settings.insert(settings.end(), {rpm, load});
    wear.push_back(amplitude * load + rpm / 3000.0f);
  }
  const InputFeatures features{{0.0f, 0.0f}, {3000.0f, 1.0f}};  // offsets and scales
  return {{SampleArray::encoded({count, 32, 1}, vibration, {-1.0f, 1.0f}),
           SampleArray::encoded({count, 2}, settings, {0.0f, 1.0f}, features)},
          std::vector{SampleArray::floats({count, 1}, wear)}};
}

class Wear : public Module {
 public:
  std::string_view type() const override { return "Wear"; }

 protected:
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    return {(*head_)((*both_)((*vibration_)(x[0]), (*settings_)(x[1])))};
  }

 private:
  std::shared_ptr<Sequential> vibration_ =
      add("vibration", Sequential{Conv1d{1, 8}, ReLU{}, GlobalMaxPool1d{}, Flatten{}});
  std::shared_ptr<Sequential> settings_ = add("settings", Sequential{Linear{2, 8}, ReLU{}});
  std::shared_ptr<Concat> both_ = add("both", Concat{});
  std::shared_ptr<Sequential> head_ =
      add("head", Sequential{Linear{16, 16}, ReLU{}, Linear{16, 1}});
};

/// The mean squared error of the network on a data set.
double error(Module& net, const TensorDataset& data) {
  const Batch batch = data.batch(0, data.size());
  return mse_loss(net(batch.inputs())[0], batch.targets[0]).item();
}

void train_wear(Module& net,
                const TensorDataset& training_set,
                const TensorDataset& validation_set,
                int64_t epochs,
                float learning_rate) {
  DataLoader batches{training_set, {.batch = 32, .shuffle = true}};
  Adam optimizer{net.parameters(), {.learning_rate = learning_rate}};
  fit(net,
      optimizer,
      batches,
      [&](Batch& batch) { return mse_loss(net(batch.inputs())[0], batch.targets[0]); },
      {.epochs = epochs,
       .evaluate =
           [&] {
             return Metrics{{"error", error(net, validation_set)}};
           },
       .early_stopping = {.metric = "error", .patience = 3, .smaller_is_better = true}});
}

int main() try {
  manual_seed(1);
  const TensorDataset training_set = motors(2000, 1), validation_set = motors(500, 2);
  const TensorDataset test_set = motors(500, 3);
  Wear net;
  train_wear(net, training_set, validation_set, 8, 5e-3f);
  const std::vector<Tensor> example = test_set.batch(0, 1).inputs();
  quant::prepare_qat(net, example, quant::QConfig::int8());
  train_wear(net, training_set, validation_set, 2, 1e-3f);
  net.eval();

  const quant::IntegerModel model = quant::convert(net, example);
  const quant::Parity parity = quant::verify_parity(net, model, DataLoader{test_set});
  if (!parity.first_difference().empty()) throw QuantError("guide", "the integers differ");

  // Raw values of one motor: the vibration, then revolutions per minute and load.
  std::vector<float> vibration, wear(1);
  for (int t = 0; t < 32; ++t) vibration.push_back(t % 4 < 2 ? 0.5f : -0.5f);
  const std::vector<float> settings{1500.0f, 0.6f};
  const std::vector<std::span<const float>> inputs{vibration, settings};
  const std::vector<std::span<float>> outputs{wear};
  model.run(inputs, outputs);
  std::cout << "wear: " << wear[0] << ", expected 0.8\n";
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
