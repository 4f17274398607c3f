#include "framework/integer/packed_weights.hpp"

namespace quantrain::integer {

std::vector<uint8_t> pack_weights(const SharedArray<int8_t>& weights, int bits) {
  const int width = packed_width(bits);
  const unsigned mask = (1u << width) - 1;
  std::vector<uint8_t> bytes(static_cast<size_t>(packed_weight_bytes(weights.size(), bits)), 0);
  for (int64_t i = 0; i < weights.size(); ++i) {
    const int64_t bit = i * width;
    const unsigned code = static_cast<unsigned>(weights[i]) & mask;
    bytes[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(code << (bit % 8));
  }
  return bytes;
}

std::vector<int8_t> unpack_weights(std::span<const uint8_t> bytes, int64_t count, int bits) {
  const int width = packed_width(bits);
  std::vector<int8_t> weights(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bit = i * width;
    const unsigned byte = bytes[static_cast<size_t>(bit / 8)];
    // Moves the code to the top of a byte and back, which extends its sign.
    const auto top = static_cast<int8_t>(byte << (8 - width - bit % 8));
    weights[static_cast<size_t>(i)] = static_cast<int8_t>(top >> (8 - width));
  }
  return weights;
}

}  // namespace quantrain::integer
