#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layers/layers.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/prepare/qconfig.hpp"

// Random networks, to cover networks that we did not think of. They use every kind of layer that
// can be converted. The same seed gives the same network.
namespace quantrain::quant::test {

struct RandomNetwork {
  std::unique_ptr<Module> net;
  /// One or two images [H, W, C]. The network has as many outputs as inputs.
  std::vector<Shape> inputs;
  int64_t classes;
  QConfig config;
  std::string description;  ///< layers and bits, for messages
};

RandomNetwork random_network(uint64_t seed);

/// Random codes of n samples, 0 and 1 for inputs of 1 bit: all samples of the program's first
/// input, then those of the next.
std::vector<uint8_t> random_samples(const integer::Program& program, int64_t n, uint64_t seed);

/// Trains `network` a little with quantization and converts it. `seed` gives the example images.
IntegerModel train_and_convert(RandomNetwork& network, uint64_t seed);
/// The same; also compares the network and the model on random images.
Parity train_and_verify(RandomNetwork& network, uint64_t seed);

}  // namespace quantrain::quant::test
