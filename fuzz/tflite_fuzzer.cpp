// Imports a .tflite file, and runs the network on every instruction set. The results must be equal.
#include "fuzz/run_network.hpp"
#include "quant/import/tflite/import_tflite.hpp"

namespace quantrain::fuzz {

bool accepts(std::span<const uint8_t> input) {
  run_everywhere(import_tflite(input, "file", kMemory).program());
  return true;
}

}  // namespace quantrain::fuzz
