// Quantizes the network of docs/guide.md after training, then with further training. Saves it as
// integers and as C99.
#include <iostream>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "layers/training/fit.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// After training: some images determine the ranges that the codes cover.
void quantize_after_training(const Dataset& training_set, const Dataset& test_set) {
  Sequential net = make_network();
  load(net, "float.safetensors");
  quant::prepare_ptq(net, test_set.batch(0, 1).input, quant::QConfig::int8());
  quant::calibrate(net, DataLoader{training_set.first(320)});
  std::cout << quant::ranges(net);
  std::cout << "accuracy after PTQ: " << accuracy(net, test_set) << '\n';
}

/// 4-bit weights with learned scales, but 8-bit weights in the first and last layer; 6-bit
/// activations.
quant::QConfig few_bits() {
  quant::QConfig config = quant::QConfig::bits(4, 6);
  quant::LayerConfig wide = config.model;  // a copy, because an entry replaces all settings
  wide.weight.bits = 8;
  config.layers["0"] = wide;   // sees the pixels
  config.layers["10"] = wide;  // gives the logits
  config.model.weight.estimator = quant::Estimator::kLearned;
  return config;
}

/// While training: the network adapts to the rounding of weights and activations.
quant::IntegerModel train_quantized(const Dataset& training_set, const Dataset& test_set) {
  Sequential net = make_network();
  load(net, "float.safetensors");
  const Tensor example = test_set.batch(0, 1).input;
  quant::prepare_qat(net, example, few_bits());
  std::cout << quant::plan(net, example);
  train(net, training_set, 2, 2e-3f, random_shift(1));
  quant::freeze(net);  // training changes no range, scale or batch statistic from here on
  train(net, training_set, 1, 2e-4f, random_shift(1));
  std::cout << "accuracy after QAT: " << accuracy(net, test_set) << '\n';

  const quant::IntegerModel model = quant::convert(net, example);
  const quant::Parity parity = quant::verify_parity(net, model, DataLoader{test_set});
  std::cout << parity;
  if (!parity.first_difference().empty()) throw QuantError("guide", "the integers differ");
  return model;
}

/// Ternary weights, and activations of 4 bits, with the float network as the teacher.
void train_ternary(const Dataset& training_set, const Dataset& test_set) {
  Sequential net = make_network(), teacher = make_network();
  load(net, "float.safetensors");
  load(teacher, "float.safetensors");
  teacher.eval();
  quant::QConfig config = quant::QConfig::bits(2, 4);
  quant::LayerConfig wide = config.model;
  wide.weight.bits = 8;
  config.layers["0"] = config.layers["10"] = wide;
  config.model.weight.function = quant::Ternary{};
  config.model.activation.estimator = quant::Estimator::kPact;
  quant::prepare_qat(net, test_set.batch(0, 1).input, config);
  Adam optimizer(net.parameters(), {.learning_rate = 2e-3f, .weight_decay = 1e-4f});
  DataLoader batches(training_set, {.batch = 32, .shuffle = true, .augment = random_shift(1)});
  const auto loss = [&](Batch& batch) {
    const Tensor wanted = [&] {
      const NoGrad no_grad;
      return teacher(batch.input);
    }();
    return distillation_loss(net(batch.input), wanted, 4.0f);
  };
  const Schedule schedule = cosine_schedule(4e-3f, {.steps = 4 * batches.batches()});
  fit(net, optimizer, batches, loss, {.epochs = 4, .schedule = schedule});
  std::cout << "accuracy with ternary weights: " << accuracy(net, test_set) << '\n';
}

/// y = x + norm(conv(max(x, 0))), with unchanged shape.
class BinaryResidual : public Module {
 public:
  explicit BinaryResidual(int64_t channels)
      : relu_(add("relu", ReLU{})),
        branch_(add("branch",
                    Sequential{Conv2d{channels, channels, {.padding = 1, .bias = false}},
                               BatchNorm2d{channels}})),
        sum_(add("sum", Add{})) {}

  std::string_view type() const override { return "BinaryResidual"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*sum_)((*branch_)((*relu_)(x)), x); }

 private:
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
};

Sequential make_binary_network() {
  return Sequential{Conv2d{1, 32, {.stride = 2, .padding = 1, .bias = false}},  // [N, 8, 8, 32]
                    BatchNorm2d{32},
                    BinaryResidual{32},
                    BinaryResidual{32},
                    GlobalAvgPool2d{},
                    Flatten{},
                    Linear{32, 4}};
}

/// 1 bit for the weights of the residual convolutions and for their input. 8 bits for the rest.
quant::QConfig one_bit() {
  quant::QConfig config = quant::QConfig::bits(1, 1);
  config.model.weight.function = quant::Binary{};
  config.model.activation.estimator = quant::Estimator::kLearned;
  config.types["ReLU"] = config.model;  // what the convolutions read
  config.model.activation = {};         // sums, and what they add
  config.layers["0"] = config.layers["6"] = quant::QConfig::int8().model;
  return config;
}

void train_binary(const Dataset& training_set, const Dataset& test_set) {
  Sequential net = make_binary_network();
  train(net, training_set, 2, 4e-3f, random_shift(1));
  const Tensor example = test_set.batch(0, 1).input;
  quant::prepare_qat(net, example, one_bit());
  std::cout << quant::plan(net, example);
  train(net, training_set, 6, 4e-3f, random_shift(1));
  std::cout << "accuracy with 1 bit: " << accuracy(net, test_set) << '\n';
  const quant::Parity parity =
      quant::verify_parity(net, quant::convert(net, example), DataLoader{test_set});
  if (!parity.first_difference().empty()) throw QuantError("guide", "the integers differ");
}

/// Saves an image as raw bytes, for the programs on devices.
void save_image(const Dataset& images, int64_t i) {
  const std::span<const uint8_t> parts[] = {images.image(i)};
  write_file("image", parts);
  std::cout << "image " << i << " is of class " << images.label(i) << '\n';
}

int main() try {
  const Dataset training_set = shapes(3000, 1), test_set = shapes(500, 2);
  quantize_after_training(training_set, test_set);
  train_ternary(training_set, test_set);
  train_binary(training_set, test_set);
  const quant::IntegerModel model = train_quantized(training_set, test_set);
  model.save("model.safetensors", {{"classes", "frame, cross, saltire, block"}});
  save_image(test_set, 0);

  const C99Sources sources = export_c99(model.program(), {.name = "shapes"});
  const Batch some = test_set.batch(0, 20);
  write_c99(".", sources, c99_test(model.program(), some.bytes(), {.name = "shapes"}));
  std::cout << sources.plan;
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
