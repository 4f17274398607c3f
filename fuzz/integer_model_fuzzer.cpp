// Loads a saved integer network, and runs it on every instruction set. The results must be equal.
#include "fuzz/run_network.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  run_everywhere(IntegerModel::load(input, kMemory).program());
  return true;
}

}  // namespace quantrain::fuzz
