#pragma once

#include <algorithm>

#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

// Computes integer convolutions by their definition, and checks that the kernels give the same
// results.
namespace quantrain::test {

inline size_t at(int64_t i) { return static_cast<size_t>(i); }

/// Index of the first element that differs, or -1.
template <class T>
int64_t first_difference(const std::vector<T>& actual, const std::vector<T>& expected) {
  const auto differs =
      std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
  if (differs.first == actual.end() && differs.second == expected.end()) return -1;
  return differs.first - actual.begin();
}

struct Convolution {
  kernels::Conv2dShape s;
  std::vector<uint8_t> x;
  std::vector<int8_t> w;
  std::vector<int32_t> bias;
  int32_t zero_x;

  Convolution(const kernels::Conv2dShape& shape, Random& random)
      : s(shape),
        x(random_codes(s.x_elements(), random)),
        w(random_weights(s.weight_elements(), random)),
        zero_x(static_cast<int32_t>(random.below(256))) {
    for (int64_t o = 0; o < s.o; ++o)
      bias.push_back(static_cast<int32_t>(random.below(20001) - 10000));
  }

  int32_t sum(int64_t n, int64_t row, int64_t column, int64_t o) const {
    int32_t sum = bias[at(o)];
    for (int64_t i = 0; i < s.kh; ++i) {
      for (int64_t j = 0; j < s.kw; ++j) {
        const int64_t h = row * s.stride_h + i * s.dilation_h - s.pad_h;
        const int64_t v = column * s.stride_w + j * s.dilation_w - s.pad_w;
        if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
        for (int64_t c = 0; c < s.group_c(); ++c) {
          const int64_t channel = o / s.group_o() * s.group_c() + c;
          sum += w[at(((o * s.kh + i) * s.kw + j) * s.group_c() + c)] *
                 (x[at(((n * s.h + h) * s.w + v) * s.c + channel)] - zero_x);
        }
      }
    }
    return sum;
  }

  std::vector<int32_t> sums() const {
    std::vector<int32_t> y;
    for (int64_t n = 0; n < s.n; ++n) {
      for (int64_t row = 0; row < s.oh(); ++row) {
        for (int64_t column = 0; column < s.ow(); ++column) {
          for (int64_t o = 0; o < s.o; ++o) y.push_back(sum(n, row, column, o));
        }
      }
    }
    return y;
  }
};

/// Checks that the sums and codes of the kernels are right, and that nothing past the end of x, of
/// the sums or of the codes is read or written.
inline void check_convolution(const Convolution& conv,
                              const std::vector<int32_t>& sums,
                              const Multipliers& multipliers,
                              kernels::ProductBits bits = {}) {
  using namespace kernels;
  const Conv2dShape& s = conv.s;
  CAPTURE(s.n, s.h, s.w, s.c, s.o, s.kh, s.kw, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.groups);
  CAPTURE(s.dilation_h, s.dilation_w);
  const Guarded x(conv.x);
  CAPTURE(bits.weights, bits.binary);
  const PackedWeightsS8 w(s, conv.w.data(), bits);
  Guarded acc(std::vector<int32_t>(sums.size(), -1));
  const RequantizeU8 requantize = multipliers.view();
  const ProductParams params(w, conv.zero_x, conv.bias.data(), &requantize);
  conv2d_u8s8_s32(s, x.data(), w, params, acc.data());
  CHECK(first_difference(acc.values(), sums) == -1);
  std::vector<uint8_t> codes;
  for (size_t i = 0; i < sums.size(); ++i)
    codes.push_back(multipliers(sums[i], static_cast<int64_t>(i) % s.o));
  Guarded y(std::vector<uint8_t>(sums.size(), 7));
  conv2d_u8s8_u8(s, x.data(), w, params, y.data());
  CHECK(first_difference(y.values(), codes) == -1);
}

}  // namespace quantrain::test
