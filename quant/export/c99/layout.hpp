#pragma once

#include <cstdint>
#include <vector>

// Orders in which the exported tables hold weights.
namespace quantrain::c99 {

inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// weights [outputs, length] as groups of four outputs, [k / 4][output][k % 4], and the outputs
/// left over as rows, both filled up to a multiple of 4 with zeros.
std::vector<int8_t> grouped_weights(const int8_t* weights, int64_t outputs, int64_t length);

/// Codes of a row that a word of packed weights holds: 8 of 4 bits, 16 of 2 bits.
inline int64_t fields(int bits) { return 32 / bits; }
/// Which of them field n holds: neighbouring pairs of 16-bit halves are read in the order (0, 2),
/// (1, 3), (4, 6), (5, 7), ...
inline int64_t field_position(int64_t n, int bits) {
  const int64_t half = fields(bits) / 2;
  return n % half / 2 * 4 + n % 2 + (n >= half ? 2 : 0);
}
/// The same of weights of at most `bits` bits, each less its lowest value, -2^(bits - 1): words of
/// groups, [k / fields][output], then rows. Filled up with the code of 0.
std::vector<uint32_t> packed_weights(const int8_t* weights,
                                     int64_t outputs,
                                     int64_t length,
                                     int bits);

/// weights [channels, taps] as groups of four channels, [tap][channel], and one row of taps for
/// each channel left over.
std::vector<int8_t> depthwise_weights(const int8_t* weights, int64_t channels, int64_t taps);

}  // namespace quantrain::c99
