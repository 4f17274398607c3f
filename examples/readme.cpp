// The program of README.md: trains, quantizes, converts and saves a small network.
#include <iostream>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/loader.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"

using namespace quantrain;

void train(Module& net, const DataLoader& batches, float learning_rate) {
  Adam optimizer{net.parameters(), {.learning_rate = learning_rate}};
  for (const Batch& batch : batches) {
    Tensor loss = cross_entropy(net(batch.input), batch);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
}

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  DataLoader batches{Dataset::mnist(folder, Split::kTrain), {.batch = 64, .shuffle = true}};
  const Dataset test_set = Dataset::mnist(folder, Split::kTest);
  const Tensor example = test_set.batch(0, 1).input;

  Sequential net{Conv2d{1, 16, {.padding = 1}},
                 BatchNorm2d{16},
                 ReLU{},
                 MaxPool2d{2},
                 Flatten{},
                 Linear{16 * 14 * 14, 10}};
  train(net, batches.epoch(0), 1e-3f);  // float

  quant::prepare_qat(net, example, quant::QConfig::int8());
  std::cout << quant::plan(net, example);  // what becomes of each layer
  train(net, batches.epoch(1), 2e-4f);     // 8-bit weights and activations, simulated

  const quant::IntegerModel model = quant::convert(net, example);
  std::cout << quant::verify_parity(net, model, DataLoader{test_set});
  model.save("model.safetensors");
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
