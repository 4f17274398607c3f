#pragma once

#include <cstdint>
#include <vector>

// The order of weights in the exported tables.
namespace quantrain::c99 {

inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Reorders weights [outputs, length] into groups of four outputs, [k / 4][output][k % 4] with k in
/// [0, length). The remaining outputs follow, one row each. Zeros pad the length to a multiple of
/// 4.
std::vector<int8_t> grouped_weights(const int8_t* weights, int64_t outputs, int64_t length);

/// Number of weights in a word of packed weights: 8 of 4 bits, 16 of 2 bits or 32 of 1 bit.
inline int64_t fields(int bits) { return 32 / bits; }
/// Field n of a word begins at bit n * bits. Returns which of the word's weights it holds. A mask
/// extracts two fields at a time, 16 bits apart. These pairs of fields hold the weights (0, 2),
/// (1, 3), (4, 6), (5, 7), ...
inline int64_t field_position(int64_t n, int bits) {
  const int64_t half = fields(bits) / 2;
  return n % half / 2 * 4 + n % 2 + (n >= half ? 2 : 0);
}
/// Like grouped_weights(), but packs weights of at most `bits` bits, 4, 2 or 1, into words, by
/// integer::pack_codes() and little endian. The words of each
/// group of four outputs have the order [k / fields(bits)][output]. The remaining outputs follow,
/// one row each. Rows are padded to whole words. Each weight w, including a padding 0, is stored as
/// w + 2^(bits - 1); a weight of 1 bit, -1 or +1, as 0 or 1, and a padding 0 as 0.
std::vector<uint32_t> packed_weights(const int8_t* weights,
                                     int64_t outputs,
                                     int64_t length,
                                     int bits);

/// Packs weights of 1 bit for products of bits: rows of words, where weight 4 * i + j of a word is
/// bit 8 * j + i. Rows are padded with zeros to whole words.
std::vector<uint32_t> bit_weights(const int8_t* weights, int64_t outputs, int64_t length);

/// Reorders weights [channels, taps] into groups of four channels, [tap][channel]. The remaining
/// channels follow, one row of taps each.
std::vector<int8_t> depthwise_weights(const int8_t* weights, int64_t channels, int64_t taps);

}  // namespace quantrain::c99
