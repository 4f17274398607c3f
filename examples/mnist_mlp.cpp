// A multilayer perceptron, 784-256-128-10.
#include "examples/common/program.hpp"
#include "layers/layers.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  const examples::Program program{
      .name = "mnist_mlp",
      .description =
          "Trains a multilayer perceptron on images of digits or clothes and converts it to "
          "integers.",
      .defaults = {.learning_rate = 2e-3f, .qat_learning_rate = 5e-4f},
  };
  return examples::run(argc, argv, program, [] {
    return Sequential{
        Flatten{},
        Linear{784, 256},
        ReLU{},
        Linear{256, 128},
        ReLU{},
        Linear{128, 10},
    };
  });
}
