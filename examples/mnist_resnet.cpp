// Trains the network resnet() of examples/networks.hpp and converts it to integers.
#include "examples/common/program.hpp"
#include "examples/networks.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  const examples::Program program{
      .name = "mnist_resnet",
      .description =
          "Trains a residual network on images of digits or clothes and converts it to integers.",
      .defaults = {},
  };
  return examples::run(argc, argv, program, examples::resnet);
}
