#include <algorithm>
#include <limits>

#include "framework/kernels/integer/channels.hpp"
#include "tests/framework/kernels/integer_convolution.hpp"

// Products of few bits with few terms. Their sums are small, so their multipliers may be 1/4 or
// more, and kernels multiply the sums by 2^left first (RequantizeU8).
using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

/// Multipliers from 1/32 to 2^(left - 2) for n channels, and some that give the zero point alone.
Multipliers large_multipliers(int64_t n, int32_t left, Random& random) {
  Multipliers multipliers(n, false, random);
  for (int32_t& shift : multipliers.shift)
    shift = 33 - left + static_cast<int32_t>(random.below(left + 3));
  multipliers.shift[0] = 33 - left;
  const auto set = [&](size_t channel, int32_t m0, int32_t shift) {
    if (channel >= multipliers.m0.size()) return;
    multipliers.m0[channel] = m0;
    multipliers.shift[channel] = shift;
  };
  set(1, 1 << 30, std::max(31, 33 - left));  // 1/2, with ties, if left allows
  set(2, 0, 62);
  set(3, std::numeric_limits<int32_t>::max(), 55 + static_cast<int32_t>(random.below(8)));
  return multipliers;
}

Convolution short_convolution(const Conv2dShape& shape, int bits, Random& random) {
  Convolution conv(shape, random);
  const int levels = 1 << bits;
  for (int8_t& w : conv.w) {
    const auto code = static_cast<int>(random.below(levels));
    w = static_cast<int8_t>(bits == 1 ? 2 * code - 1 : code - levels / 2);
  }
  for (uint8_t& x : conv.x) x = static_cast<uint8_t>(x % levels);
  for (int32_t& bias : conv.bias) bias %= 10;
  conv.zero_x %= levels;
  return conv;
}

void check_short_sums(const Conv2dShape& shape, Random& random) {
  for (const int bits : {1, 2, 4}) {
    const auto left = static_cast<int32_t>(1 + random.below(6));
    const Convolution conv = short_convolution(shape, bits, random);
    const std::vector<int32_t> sums = conv.sums();
    const Multipliers multipliers = large_multipliers(shape.o, left, random);
    for_each_isa([&] {
      const RequantizeU8 given = multipliers.view();
      const PackedWeightsS8 w(shape, conv.w.data(), {bits});
      const RequantizeU8 r = ProductParams(w, conv.zero_x, conv.bias.data(), &given).requantize(0);
      CHECK(r.usual);
      CHECK(r.left == left);
      check_convolution(conv, sums, multipliers, {bits});
      check_convolution(conv, sums, multipliers, {.weights = bits, .kept = true, .small = true});
      if (bits == 1 && conv.zero_x == 0)
        check_convolution(conv, sums, multipliers, {.weights = 1, .binary = true});
    });
  }
}

bool is_usual(int32_t least, int32_t largest, int64_t most) {
  const int32_t shift[] = {largest, least, kAnyShift};
  RequantizeU8 r{nullptr, shift};
  set_usual(3, most, r);
  return r.usual;
}

}  // namespace

TEST_CASE("short sums with large multipliers are exact on every instruction set",
          "[kernels][integer][few_bits]") {
  Random random(1);
  for (const int64_t o : {1, 3, 8, 17, 33, 64, 70}) {
    for (const int64_t k : {1, 3, 4, 9, 16, 33, 64, 128}) {
      check_short_sums({.n = 1 + random.below(13), .c = k, .o = o}, random);
    }
    check_short_sums(
        {.n = 2, .h = 5, .w = 7, .c = 6, .o = o, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1}, random);
    for (const int64_t kernel : {3, 5}) {
      Conv2dShape depthwise{.n = 2, .h = 9, .w = 7, .c = o, .o = o, .kh = kernel, .kw = kernel};
      depthwise.groups = o;
      check_short_sums(depthwise, random);
      depthwise.pad_h = depthwise.pad_w = depthwise.stride_h = depthwise.stride_w = 2;
      check_short_sums(depthwise, random);
    }
  }
}

TEST_CASE("sums are multiplied only as far as 32 bits hold them", "[kernels][integer]") {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  CHECK(is_usual(33, 54, kMost));
  CHECK_FALSE(is_usual(33, 55, kMost));
  CHECK_FALSE(is_usual(32, 40, kMost));
  CHECK(is_usual(32, 53, kMost / 2));
  CHECK_FALSE(is_usual(32, 54, kMost / 2));
  CHECK_FALSE(is_usual(32, 53, kMost / 2 + 1));
  CHECK(is_usual(19, 40, kMost >> 14));
  CHECK_FALSE(is_usual(19, 41, kMost >> 14));
  CHECK_FALSE(is_usual(18, 18, 1));  // kAnyShift + 15 is above 54

  // A product is usual without a bound if no multiplier is large: its sums fit, by (7).
  const Conv2dShape many{.c = 70000, .o = 1};
  const std::vector<int8_t> weights(70000, 1);
  const int32_t m0 = 1 << 30, shift = 50;
  const RequantizeU8 one{&m0, &shift};
  CHECK(ProductParams(PackedWeightsS8(many, weights.data()), 0, nullptr, &one).requantize(0).usual);

  // Sums of 2^30 - 1, which can be doubled, and of 2^30, which cannot, of either sign.
  Random random(2);
  for (const int32_t bias : {(1 << 30) - 1 - 255 * 128, (1 << 30) - 255 * 128}) {
    for (const int sign : {1, -1}) {
      Convolution conv({.n = 3, .c = 1, .o = 20}, random);
      conv.zero_x = sign > 0 ? 255 : 0;
      conv.x.assign(conv.x.size(), sign > 0 ? 0 : 255);
      conv.w.assign(conv.w.size(), -128);
      conv.bias.assign(conv.bias.size(), sign * bias);
      Multipliers multipliers(20, false, random);
      multipliers.shift.assign(20, 53);
      multipliers.shift[3] = 32;
      for_each_isa([&] {
        const RequantizeU8 given = multipliers.view();
        const PackedWeightsS8 w(conv.s, conv.w.data(), {});
        const bool fits = bias + 255 * 128 < 1 << 30;
        CHECK(ProductParams(w, conv.zero_x, conv.bias.data(), &given).requantize(0).usual == fits);
        check_convolution(conv, conv.sums(), multipliers);
      });
    }
  }
}

TEST_CASE("multipliers vanish if they are too small for every sum", "[kernels][integer]") {
  constexpr int64_t kLargest = int64_t{1} << 25;  // times 2^30 it is half of 2^56
  const Multiplier small{1 << 30, 56};
  CHECK(requantize(static_cast<int32_t>(kLargest), small, 7, 0, 255) == 8);
  CHECK_FALSE(ProductParams::vanishes(small, kLargest));
  CHECK(requantize(static_cast<int32_t>(kLargest) - 1, small, 7, 0, 255) == 7);
  CHECK(requantize(1 - static_cast<int32_t>(kLargest), small, 7, 0, 255) == 7);
  CHECK(ProductParams::vanishes(small, kLargest - 1));
  CHECK(ProductParams::vanishes({0, 1}, kLargest));
  CHECK_FALSE(ProductParams::vanishes({1 << 30, 54}, 1));  // a usual shift
  CHECK_FALSE(ProductParams::vanishes({std::numeric_limits<int32_t>::max(), 62},
                                      std::numeric_limits<int32_t>::max()));
}

TEST_CASE("large multipliers stay exact if another instruction set is chosen later",
          "[kernels][integer]") {
  Random random(3);
  const Conv2dShape shape{.n = 5, .c = 9, .o = 20};
  const Convolution conv = short_convolution(shape, 2, random);
  const std::vector<int32_t> sums = conv.sums();
  const Multipliers multipliers = large_multipliers(shape.o, 3, random);
  std::vector<uint8_t> codes;
  for (size_t i = 0; i < sums.size(); ++i)
    codes.push_back(multipliers(sums[i], static_cast<int64_t>(i) % shape.o));
  const RequantizeU8 given = multipliers.view();
  const PackedWeightsS8 w(shape, conv.w.data(), {2});
  const ProductParams params(w, conv.zero_x, conv.bias.data(), &given);
  for_each_isa([&] {
    std::vector<uint8_t> y(codes.size(), 7);
    conv2d_u8s8_u8(shape, conv.x.data(), w, params, y.data());
    CHECK(y == codes);
  });
}
