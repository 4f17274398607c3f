// Trains the network of docs/guide.md in float and saves it.
#include <iostream>

#include "framework/core/error.hpp"
#include "shapes.hpp"
#include "training.hpp"

int main() try {
  manual_seed(1);  // for the initial weights of the layers
  Sequential net = make_network();
  const Dataset test_set = shapes(500, 2);
  std::cout << summary(net, test_set.batch(0, 1).input);
  train(net, shapes(3000, 1), 6, 5e-3f, random_shift(1));
  std::cout << "accuracy in float: " << accuracy(net, test_set) << '\n';
  save(net, "float.safetensors");

  // Loading a checkpoint restores the training state that was saved.
  Adam optimizer{net.parameters(), {.learning_rate = 1e-3f}};
  save_checkpoint(net, optimizer, 564, "checkpoint");
  Sequential again = make_network();
  Adam its_optimizer{again.parameters(), {.learning_rate = 1e-3f}};
  const int64_t step = load_checkpoint(again, its_optimizer, "checkpoint");
  std::cout << "step " << step << ": " << accuracy(again, test_set) << '\n';
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
