#pragma once

#include <vector>

#include "examples/tiny_networks.hpp"
#include "framework/kernels/conv_shape.hpp"

namespace quantrain::benchmarks {

using examples::Network;

/// The networks of the examples: those for MNIST images, and those of MLPerf Tiny.
const std::vector<Network>& networks();

/// A batch [n, ...] of random samples for a network: bytes that represent numbers from 0 to 1.
Tensor noise(const Network& network, int64_t n, uint64_t seed = 0);

/// A convolution or linear layer of a network. The shape of a linear layer is that of a 1 x 1
/// convolution of 1 x 1 images.
struct Layer {
  kernels::Conv2dShape shape;
  bool linear = false;
  bool first = false;  ///< the gradient of its input is not needed
};
/// The convolutions and linear layers of a network in execution order, for a batch size.
std::vector<Layer> layers(const Network& network, int64_t batch);

/// Number of multiplications and additions in the forward pass of these layers.
int64_t inference_operations(const Network& network, int64_t batch);
/// The same, plus those for the gradients of weights and inputs.
int64_t training_operations(const Network& network, int64_t batch);

}  // namespace quantrain::benchmarks
