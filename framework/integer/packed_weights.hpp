#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/shared_array.hpp"

// Packed storage of weights. A byte holds four weights of 2 bits, two of 3 or 4 bits, or one of 5
// to 8 bits. Codes are in two's complement. The first code of a byte is in the lowest bits.
namespace quantrain::integer {

/// Bits that a stored weight takes.
constexpr int packed_width(int bits) { return bits == 2 ? 2 : bits <= 4 ? 4 : 8; }
/// Bytes that `count` stored weights take.
constexpr int64_t packed_weight_bytes(int64_t count, int bits) {
  const int64_t per_byte = 8 / packed_width(bits);
  return (count + per_byte - 1) / per_byte;
}

std::vector<uint8_t> pack_weights(const SharedArray<int8_t>& weights, int bits);
/// The inverse of pack_weights(). bytes has packed_weight_bytes(count, bits) elements.
std::vector<int8_t> unpack_weights(std::span<const uint8_t> bytes, int64_t count, int bits);

}  // namespace quantrain::integer
