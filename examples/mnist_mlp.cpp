// Trains the network mlp() of examples/networks.hpp and converts it to integers.
#include "examples/common/images.hpp"
#include "examples/networks.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  const examples::MnistProgram program{
      .name = "mnist_mlp",
      .description =
          "Trains a multilayer perceptron on images of digits or clothes and converts it to "
          "integers.",
      .defaults = {.learning_rate = 2e-3f},
  };
  return examples::run_mnist(argc, argv, program, examples::mlp);
}
