#include <limits>

#include "framework/kernels/integer/channels.hpp"
#include "tests/framework/kernels/integer_convolution.hpp"

// Products of few bits with few terms. Their sums are small, so their multipliers are 1/4 or more,
// and kernels multiply the sums by 2^left first (RequantizeU8).
using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

/// Multipliers from 1/16 to 2^(33 - left) for n channels.
Multipliers large_multipliers(int64_t n, int32_t left, Random& random) {
  Multipliers multipliers(n, false, random);
  for (int32_t& shift : multipliers.shift)
    shift = 33 - left + static_cast<int32_t>(random.below(left + 3));
  multipliers.shift[0] = 33 - left;
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
    for (const int64_t k : {1, 3, 4, 9, 16, 33, 64}) {
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

  // Sums of 2^30 - 1 and more, of either sign, around the largest that can be doubled.
  Random random(2);
  for (const int32_t bias : {(1 << 30) - 1 - 255 * 128, (1 << 30) - 255 * 128}) {
    for (const int sign : {1, -1}) {
      Convolution conv({.n = 3, .c = 1, .o = 20}, random);
      conv.zero_x = 0;
      conv.x.assign(conv.x.size(), 255);
      conv.w.assign(conv.w.size(), static_cast<int8_t>(sign > 0 ? 127 : -128));
      conv.bias.assign(conv.bias.size(), sign * bias);
      Multipliers multipliers(20, false, random);
      multipliers.shift.assign(20, 53);
      multipliers.shift[3] = 32;
      for_each_isa([&] {
        const RequantizeU8 given = multipliers.view();
        const PackedWeightsS8 w(conv.s, conv.w.data(), {});
        const bool fits = bias + 255 * 128 < 1 << 30;
        CHECK(ProductParams(w, 0, conv.bias.data(), &given).requantize(0).usual == fits);
        check_convolution(conv, conv.sums(), multipliers);
      });
    }
  }
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
