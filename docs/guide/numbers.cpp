// Numbers as targets, and a network with two inputs.
#include <iostream>
#include <string>

#include "framework/core/error.hpp"
#include "framework/data/features.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "framework/io/metadata.hpp"
#include "layers/training/fit.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "training.hpp"

struct Motors {
  std::vector<float> vibration;  // [N, 32]
  std::vector<float> settings;   // [N, 2]: revolutions per minute, load
  std::vector<float> wear;       // [N], in micrometres
};

Motors measure(int64_t count, uint64_t seed) {
  Random random(seed);
  Motors motors;
  for (int64_t i = 0; i < count; ++i) {
    const float amplitude = random.uniform(0.1f, 0.8f), rpm = random.uniform(500.0f, 3000.0f);
    const float load = random.uniform(0.0f, 1.0f);
    for (int t = 0; t < 32; ++t)
      motors.vibration.push_back(amplitude * (t % 4 < 2 ? 1.0f : -1.0f) +
                                 random.uniform(-0.1f, 0.1f));
    motors.settings.insert(motors.settings.end(), {rpm, load});
    motors.wear.push_back(100.0f * (amplitude * load + rpm / 3000.0f));
  }
  return motors;
}

/// The inputs are vibration and settings. The target is the wear, scaled by `scaling`.
TensorDataset data_set(const Motors& motors, const InputFeatures& scaling) {
  const auto count = static_cast<int64_t>(motors.wear.size());
  const std::vector<float> wear = scaled(motors.wear, scaling);
  const InputFeatures features{{0.0f, 0.0f}, {3000.0f, 1.0f}};  // offsets and scales
  return {{SampleArray::encoded({count, 32, 1}, motors.vibration, {-1.0f, 1.0f}),
           SampleArray::encoded({count, 2}, motors.settings, {0.0f, 1.0f}, features)},
          std::vector{SampleArray::floats({count, 1}, wear)}};
}

class Wear : public Module {
 public:
  std::string_view type() const override { return "Wear"; }

 protected:
  Tensor forward(const Tensor& vibration, const Tensor& settings) override {
    return (*head_)((*both_)((*vibration_)(vibration), (*settings_)(settings)));
  }

 private:
  std::shared_ptr<Sequential> vibration_ =
      add("vibration", Sequential{Conv1d{1, 8}, ReLU{}, GlobalMaxPool1d{}, Flatten{}});
  std::shared_ptr<Sequential> settings_ = add("settings", Sequential{Linear{2, 8}, ReLU{}});
  std::shared_ptr<Concat> both_ = add("both", Concat{});
  std::shared_ptr<Sequential> head_ =
      add("head", Sequential{Linear{16, 16}, ReLU{}, Linear{16, 1}});
};

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
       .evaluate = [&] { return evaluate(net, DataLoader{validation_set}); },
       .early_stopping = {.metric = "mse", .patience = 3, .smaller_is_better = true}});
}

int main() try {
  manual_seed(1);
  const Motors training = measure(2000, 1);
  const InputFeatures scaling = fit_mean_std(training.wear, 1);
  const TensorDataset training_set = data_set(training, scaling);
  const TensorDataset validation_set = data_set(measure(500, 2), scaling);
  const TensorDataset test_set = data_set(measure(500, 3), scaling);
  Wear net;
  train_wear(net, training_set, validation_set, 8, 5e-3f);
  const std::vector<Tensor> example = test_set.batch(0, 1).inputs();
  quant::prepare_qat(net, example, quant::QConfig::int8());
  train_wear(net, training_set, validation_set, 2, 1e-3f);
  net.eval();

  const quant::IntegerModel model = quant::convert(net, example);
  const quant::Parity parity = quant::verify_parity(net, model, DataLoader{test_set});
  if (!parity.first_difference().empty()) throw QuantError("guide", "the integers differ");
  model.save(
      "wear.safetensors",
      {{"offset", metadata_text(scaling.offset[0])}, {"scale", metadata_text(scaling.scale[0])}});

  // On the device, with the raw values of one motor: vibration, revolutions per minute and load.
  std::vector<float> vibration, wear(1);
  for (int t = 0; t < 32; ++t) vibration.push_back(t % 4 < 2 ? 0.5f : -0.5f);
  const std::vector<float> settings{1500.0f, 0.6f};
  const std::vector<std::span<const float>> inputs{vibration, settings};
  const std::vector<std::span<float>> outputs{wear};
  const IntegerModel loaded = IntegerModel::load(std::string("wear.safetensors"));
  loaded.run(inputs, outputs);
  const auto offset = metadata_number<float>(loaded, "offset");
  const auto scale = metadata_number<float>(loaded, "scale");
  std::cout << "wear: " << integer::raw_value(wear[0], offset, scale) << " um, expected 80 um\n";
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
