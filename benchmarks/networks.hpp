#pragma once

#include <vector>

#include "examples/tiny_networks.hpp"
#include "framework/kernels/conv_shape.hpp"

namespace quantrain::benchmarks {

using examples::Network;

/// Those of the examples: on MNIST's images, and those of MLPerf Tiny.
const std::vector<Network>& networks();

/// Samples [n, ...] of noise for a network: bytes that mean 0 to 1.
Tensor noise(const Network& network, int64_t n, uint64_t seed = 0);

/// A convolution or linear layer of a network. Linear layers are 1 x 1 convolutions of 1 x 1
/// images.
struct Layer {
  kernels::Conv2dShape shape;
  bool linear = false;
  bool first = false;  ///< nothing asks for the gradient of its input
};
/// In the order of their running, at a batch size.
std::vector<Layer> layers(const Network& network, int64_t batch);

/// Multiplications and additions of those layers.
int64_t inference_operations(const Network& network, int64_t batch);
/// With those of the gradients of weights and inputs.
int64_t training_operations(const Network& network, int64_t batch);

}  // namespace quantrain::benchmarks
