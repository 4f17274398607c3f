#include "quant/export/c99/layout.hpp"

#include <cstddef>

#include "framework/integer/constant.hpp"

namespace quantrain::c99 {
namespace {

// Packs codes of `bits` bits into little-endian words.
std::vector<uint32_t> words_of(const std::vector<int8_t>& codes, int bits) {
  const std::vector<uint8_t> bytes = integer::pack_codes(codes, bits);
  std::vector<uint32_t> words(bytes.size() / 4);
  for (size_t i = 0; i < bytes.size(); ++i)
    words[i / 4] |= static_cast<uint32_t>(bytes[i]) << (i % 4 * 8);
  return words;
}

}  // namespace

std::vector<int8_t> grouped_weights(const int8_t* weights, int64_t outputs, int64_t length) {
  const int64_t padded = round_up(length, 4);
  const auto weight = [&](int64_t o, int64_t k) {
    return k < length ? weights[o * length + k] : int8_t{0};
  };
  std::vector<int8_t> result;
  result.reserve(static_cast<size_t>(outputs * padded));
  int64_t o = 0;
  for (; o + 4 <= outputs; o += 4) {
    for (int64_t k = 0; k < padded; k += 4) {
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t j = 0; j < 4; ++j) result.push_back(weight(o + r, k + j));
      }
    }
  }
  for (; o < outputs; ++o) {
    for (int64_t k = 0; k < padded; ++k) result.push_back(weight(o, k));
  }
  return result;
}

std::vector<uint32_t> packed_weights(const int8_t* weights,
                                     int64_t outputs,
                                     int64_t length,
                                     int bits) {
  const int64_t in_word = fields(bits);
  const int64_t words = round_up(length, in_word) / in_word;
  std::vector<int8_t> ordered;
  ordered.reserve(static_cast<size_t>(outputs * words * in_word));
  const auto add_word = [&](int64_t o, int64_t i) {
    for (int64_t n = 0; n < in_word; ++n) {
      const int64_t k = i * in_word + field_position(n, bits);
      ordered.push_back(k < length ? weights[o * length + k] : int8_t{0});
    }
  };
  int64_t o = 0;
  for (; o + 4 <= outputs; o += 4) {
    for (int64_t i = 0; i < words; ++i) {
      for (int64_t r = 0; r < 4; ++r) add_word(o + r, i);
    }
  }
  for (; o < outputs; ++o) {
    for (int64_t i = 0; i < words; ++i) add_word(o, i);
  }
  std::vector<uint32_t> result = words_of(ordered, bits);
  // w + 2^(bits - 1) is w in two's complement with its highest bit inverted. A weight of 1 bit is
  // already packed as it is stored.
  const uint32_t highest = bits == 4 ? 0x88888888 : bits == 2 ? 0xaaaaaaaa : 0;
  for (uint32_t& word : result) word ^= highest;
  return result;
}

std::vector<uint32_t> bit_weights(const int8_t* weights, int64_t outputs, int64_t length) {
  std::vector<int8_t> ordered;
  ordered.reserve(static_cast<size_t>(outputs * round_up(length, 32)));
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < round_up(length, 32); ++k) {
      const int64_t bit = k % 32, at = k - bit + bit % 8 * 4 + bit / 8;
      ordered.push_back(at < length ? weights[o * length + at] : int8_t{0});
    }
  }
  return words_of(ordered, 1);
}

std::vector<int8_t> depthwise_weights(const int8_t* weights, int64_t channels, int64_t taps) {
  std::vector<int8_t> result;
  int64_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t r = 0; r < 4; ++r) result.push_back(weights[(c + r) * taps + t]);
    }
  }
  for (; c < channels; ++c) {
    for (int64_t t = 0; t < taps; ++t) result.push_back(weights[c * taps + t]);
  }
  return result;
}

}  // namespace quantrain::c99
