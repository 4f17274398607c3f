// Trains the network resnet() of examples/networks.hpp and converts it to integers.
#include "examples/common/images.hpp"
#include "examples/networks.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  const examples::MnistProgram program{
      .name = "mnist_resnet",
      .description =
          "Trains a residual network on images of digits or clothes and converts it to integers.",
      .defaults = {},
  };
  return examples::run_mnist(argc, argv, program, examples::resnet);
}
