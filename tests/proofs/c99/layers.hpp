#pragma once

#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::proofs {

/// A layer whose instructions are counted.
struct Layer {
  std::string name;         ///< name of the C files, such as "conv_32x32x16_16_w8"
  std::string description;  ///< such as "conv 3x3 pad 1, 32x32x16 -> 16"
  int bits = 8;             ///< bits of a weight
  int activation_bits = 8;  ///< of the layer's input and output
  integer::Program program;
};

/// Convolutions and linear layers of typical networks for microcontrollers. Makes each layer once
/// for each entry of `bits`, the number of bits of a weight; for 1 bit twice, with activations of 8
/// bits and of 1 bit ("conv_32x32x16_16_w1a1"). Every layer is a network of its own with random
/// weights, and its output codes spread over the whole range of a byte, or over 0 and 1.
std::vector<Layer> layers(const std::vector<int>& bits);

}  // namespace quantrain::proofs
