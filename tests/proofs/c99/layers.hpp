#pragma once

#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::proofs {

/// A layer whose instructions are counted.
struct Layer {
  std::string name;         ///< of the C files: "conv_3x3_32x32x16_16_w8"
  std::string description;  ///< "conv 3x3 pad 1, 32x32x16 -> 16"
  int bits = 8;             ///< of a weight
  integer::Program program;
};

/// Convolutions and linear layers of typical networks for microcontrollers, one by one, with random
/// weights of these bits. The codes of their outputs spread over the whole range of a byte.
std::vector<Layer> layers(const std::vector<int>& bits);

}  // namespace quantrain::proofs
