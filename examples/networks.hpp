#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layers.hpp"

// The networks of the examples, for images [N, 28, 28, 1] of ten classes.
namespace quantrain::examples {

/// A multilayer perceptron, 784-256-128-10.
inline Sequential mlp() {
  return Sequential{
      Flatten{},
      Linear{784, 256},
      ReLU{},
      Linear{256, 128},
      ReLU{},
      Linear{128, 10},
  };
}

/// Two convolutions, one max pool and two linear layers.
inline Sequential cnn() {
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
}

/// A block of bncnn(). It halves the image.
inline Sequential block(int64_t in, int64_t out) {
  return Sequential{
      Conv2d{in, out, {.kernel = 3, .padding = 1, .bias = false}},
      BatchNorm2d{out},
      ReLU{},
      MaxPool2d{2},
  };
}

/// Three blocks of convolution, batch norm, ReLU and max pool, then a linear layer. Batch norm
/// disappears in the integer network: it is folded into the convolution before it.
inline Sequential bncnn() {
  return Sequential{
      block(1, 16),   // [N, 28, 28, 1] -> [N, 14, 14, 16]
      block(16, 32),  // -> [N, 7, 7, 32]
      block(32, 64),  // -> [N, 3, 3, 64]
      Flatten{},
      Linear{576, 10},
  };
}

/// y = relu(x + norm(conv(relu(norm(conv(x)))))), shapes unchanged. Conversion to integers works on
/// the recorded graph, so branches need no special care.
class Residual : public Module {
 public:
  explicit Residual(int64_t channels)
      : branch_(add("branch",
                    Sequential{
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                        ReLU{},
                        Conv2d{channels, channels, {.kernel = 3, .padding = 1, .bias = false}},
                        BatchNorm2d{channels},
                    })),
        sum_(add("sum", Add{})),
        relu_(add("relu", ReLU{})) {}

  std::string_view type() const override { return "Residual"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*relu_)((*sum_)((*branch_)(x), x)); }

 private:
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
};

/// A small residual network.
inline Sequential resnet() {
  const Conv2d::Options halve{.kernel = 3, .stride = 2, .padding = 1, .bias = false};
  return Sequential{
      Conv2d{1, 16, halve},  // [N, 28, 28, 1] -> [N, 14, 14, 16]
      BatchNorm2d{16},
      ReLU{},
      Residual{16},
      Conv2d{16, 32, halve},  // -> [N, 7, 7, 32]
      BatchNorm2d{32},
      ReLU{},
      Residual{32},
      GlobalAvgPool2d{},  // -> [N, 1, 1, 32]
      Flatten{},
      Linear{32, 10},
  };
}

/// A network, with the name of its program. networks() lists the four networks above, for
/// benchmarks and proofs.
struct Network {
  std::string name;
  Sequential (*make)();
  Shape input = {28, 28, 1};  ///< shape of one sample
  int64_t outputs = 10;       ///< number of classes, or, for an autoencoder, the input's size
};
inline const std::vector<Network>& networks() {
  static const std::vector<Network> all{{.name = "mnist_mlp", .make = mlp},
                                        {.name = "mnist_cnn", .make = cnn},
                                        {.name = "mnist_bncnn", .make = bncnn},
                                        {.name = "mnist_resnet", .make = resnet}};
  return all;
}

}  // namespace quantrain::examples
