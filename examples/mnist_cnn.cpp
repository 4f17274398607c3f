// Two convolutions, one max pool and two linear layers.
#include "examples/common/program.hpp"
#include "layers/layers.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  const examples::Program program{
      .name = "mnist_cnn",
      .description =
          "Trains a convolutional network on images of digits or clothes and converts it to "
          "integers.",
      .defaults = {},
  };
  return examples::run(argc, argv, program, [] {
    return Sequential{
        Conv2d{1, 32, {.kernel = 3}},  // [N, 28, 28, 1] -> [N, 26, 26, 32]
        ReLU{},
        Conv2d{32, 64, {.kernel = 3}},  // -> [N, 24, 24, 64]
        ReLU{},
        MaxPool2d{2},  // -> [N, 12, 12, 64]
        Flatten{},
        Linear{9216, 128},
        ReLU{},
        Linear{128, 10},
    };
  });
}
