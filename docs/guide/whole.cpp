// Keeps a whole network in one file: layers, wiring, weights and the state of quantization.
#include "layers/network/network_file.hpp"

#include <iostream>

#include "framework/core/error.hpp"
#include "layers/network/trace.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// One program prepares and trains the network.
void save_whole(const Dataset& training_set) {
  Sequential net = make_network();
  load(net, "float.safetensors");
  const Tensor example = training_set.batch(0, 1).input;
  quant::prepare_qat(net, example, quant::QConfig::int8());
  train(net, training_set, 1, 1e-3f);
  Network whole = trace(net, example);
  whole.set_classes({"frame", "cross", "saltire", "block"});
  whole.metadata()["made by"] = "the guide";
  save_network(whole, "whole.safetensors");
  std::cout << whole;
}

/// Another, which does not know the layers, goes on.
void train_on(const Dataset& training_set, const Dataset& test_set) {
  Network net = load_network("whole.safetensors");
  train(net, training_set, 1, 2e-4f);
  quant::freeze(net);
  std::cout << "accuracy of the whole network: " << accuracy(net, test_set) << '\n';
  quant::convert(net, net.example()).save("whole_model.safetensors");
}

int main() try {
  const Dataset training_set = shapes(2000, 1);
  save_whole(training_set);
  train_on(training_set, shapes(500, 2));
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
