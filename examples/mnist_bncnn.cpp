// Three blocks of convolution, batch norm, ReLU and max pool, then a linear layer. Batch norm
// disappears in the integer network: it is folded into the convolution before it.
#include "examples/common/program.hpp"
#include "layers/layers.hpp"

using namespace quantrain;

namespace {

Sequential block(int64_t in, int64_t out) {
  return Sequential{
      Conv2d{in, out, {.kernel = 3, .padding = 1, .bias = false}},
      BatchNorm2d{out},
      ReLU{},
      MaxPool2d{2},
  };
}

}  // namespace

int main(int argc, char** argv) {
  const examples::Program program{
      .name = "mnist_bncnn",
      .description =
          "Trains a network with batch norm on images of digits or clothes and converts it to "
          "integers.",
      .defaults = {},
  };
  return examples::run(argc, argv, program, [] {
    return Sequential{
        block(1, 16),   // [N, 28, 28, 1] -> [N, 14, 14, 16]
        block(16, 32),  // -> [N, 7, 7, 32]
        block(32, 64),  // -> [N, 3, 3, 64]
        Flatten{},
        Linear{576, 10},
    };
  });
}
