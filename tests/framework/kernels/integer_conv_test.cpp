#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

struct Convolution {
  Conv2dShape s;
  std::vector<uint8_t> x;
  std::vector<int8_t> w;
  std::vector<int32_t> bias;
  int32_t zero_x;

  Convolution(const Conv2dShape& shape, Random& random)
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
        const int64_t h = row * s.stride_h + i - s.pad_h;
        const int64_t v = column * s.stride_w + j - s.pad_w;
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

void check_convolution(const Convolution& conv,
                       const std::vector<int32_t>& sums,
                       const Multipliers& multipliers) {
  const Conv2dShape& s = conv.s;
  CAPTURE(s.n, s.h, s.w, s.c, s.o, s.kh, s.kw, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.groups);
  const PackedWeightsS8 w(s, conv.w.data());
  std::vector<int32_t> acc(sums.size(), -1);
  const RequantizeU8 requantize = multipliers.view();
  const ProductParams params(w, conv.zero_x, conv.bias.data(), &requantize);
  conv2d_u8s8_s32(s, conv.x.data(), w, params, acc.data());
  CHECK(acc == sums);
  std::vector<uint8_t> codes;
  for (size_t i = 0; i < sums.size(); ++i)
    codes.push_back(multipliers(sums[i], static_cast<int64_t>(i) % s.o));
  std::vector<uint8_t> y(sums.size(), 7);
  conv2d_u8s8_u8(s, conv.x.data(), w, params, y.data());
  CHECK(y == codes);
}

const Conv2dShape kShapes[] = {
    {.n = 2, .h = 5, .w = 6, .c = 1, .o = 3, .kh = 3, .kw = 3},
    {.n = 2, .h = 5, .w = 6, .c = 1, .o = 17, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
    {.n = 1, .h = 6, .w = 7, .c = 1, .o = 32, .kh = 3, .kw = 3},
    {.n = 1, .h = 6, .w = 7, .c = 1, .o = 45, .kh = 3, .kw = 3},
    {.n = 1, .h = 6, .w = 7, .c = 1, .o = 70, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
    {.n = 1, .h = 7, .w = 6, .c = 1, .o = 16, .kh = 5, .kw = 5},
    {.n = 1,
     .h = 7,
     .w = 5,
     .c = 3,
     .o = 16,
     .kh = 3,
     .kw = 3,
     .stride_h = 2,
     .stride_w = 2,
     .pad_h = 1,
     .pad_w = 1},
    {.n = 3,
     .h = 6,
     .w = 9,
     .c = 5,
     .o = 9,
     .kh = 2,
     .kw = 4,
     .stride_h = 1,
     .stride_w = 3,
     .pad_h = 0,
     .pad_w = 2},
    {.n = 1,
     .h = 6,
     .w = 6,
     .c = 4,
     .o = 33,
     .kh = 5,
     .kw = 1,
     .stride_h = 3,
     .stride_w = 1,
     .pad_h = 2,
     .pad_w = 0},
    {.n = 2, .h = 3, .w = 3, .c = 2, .o = 4, .kh = 5, .kw = 5, .pad_h = 2, .pad_w = 2},
    {.n = 2, .h = 4, .w = 3, .c = 7, .o = 5, .kh = 1, .kw = 1},
    {.n = 1, .h = 4, .w = 5, .c = 3, .o = 6, .kh = 1, .kw = 1, .stride_h = 2, .stride_w = 2},
    {.n = 2, .h = 4, .w = 4, .c = 3, .o = 6, .kh = 1, .kw = 1, .pad_h = 1, .pad_w = 1},
    {.n = 2, .h = 5, .w = 5, .c = 6, .o = 4, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 2},
    {.n = 1,
     .h = 5,
     .w = 5,
     .c = 6,
     .o = 57,
     .kh = 3,
     .kw = 2,
     .stride_h = 2,
     .stride_w = 1,
     .groups = 3},
    {.n = 1, .h = 4, .w = 4, .c = 4, .o = 8, .kh = 3, .kw = 3, .groups = 4},
    {.n = 2, .h = 5, .w = 6, .c = 2, .o = 2, .kh = 3, .kw = 3, .groups = 2},
    {.n = 2,
     .h = 5,
     .w = 6,
     .c = 16,
     .o = 16,
     .kh = 3,
     .kw = 3,
     .pad_h = 1,
     .pad_w = 1,
     .groups = 16},
    {.n = 1,
     .h = 7,
     .w = 6,
     .c = 37,
     .o = 37,
     .kh = 3,
     .kw = 3,
     .stride_h = 2,
     .stride_w = 2,
     .groups = 37},
    {.n = 1, .h = 1, .w = 1, .c = 3, .o = 3, .kh = 1, .kw = 1, .groups = 3},
    {.n = 0, .h = 4, .w = 4, .c = 3, .o = 3, .kh = 3, .kw = 3},
    {.n = 1, .h = 26, .w = 26, .c = 8, .o = 24, .kh = 3, .kw = 3},
};

}  // namespace

TEST_CASE("integer convolutions are exact on every instruction set", "[kernels][integer]") {
  Random random(5);
  for (const Conv2dShape& shape : kShapes) {
    const Convolution conv(shape, random);
    const std::vector<int32_t> sums = conv.sums();
    const Multipliers usual(shape.o, false, random);
    const Multipliers any(shape.o, true, random);
    for_each_isa([&] {
      check_convolution(conv, sums, usual);
      check_convolution(conv, sums, any);
    });
  }
}

TEST_CASE("an integer convolution at the extremes of its operands does not saturate",
          "[kernels][integer]") {
  Random random(6);
  for (const int64_t groups : {1, 4}) {
    Convolution conv({.n = 1,
                      .h = 5,
                      .w = 5,
                      .c = 4,
                      .o = 4,
                      .kh = 3,
                      .kw = 3,
                      .pad_h = 1,
                      .pad_w = 1,
                      .groups = groups},
                     random);
    conv.x.assign(conv.x.size(), 255);
    conv.zero_x = 0;
    for (const int w : {127, -127, -128}) {
      conv.w.assign(conv.w.size(), static_cast<int8_t>(w));
      const Multipliers multipliers(4, false, random);
      for_each_isa([&] { check_convolution(conv, conv.sums(), multipliers); });
    }
  }
}

TEST_CASE("integer convolutions are the same for any number of threads", "[kernels][integer]") {
  Random random(7);
  for (const int64_t groups : {1, 2, 16}) {
    const Convolution conv({.n = 3,
                            .h = 24,
                            .w = 25,
                            .c = 16,
                            .o = groups == 16 ? 16 : 64,
                            .kh = 3,
                            .kw = 3,
                            .pad_h = 1,
                            .pad_w = 1,
                            .groups = groups},
                           random);
    const std::vector<int32_t> sums = conv.sums();
    const Multipliers multipliers(conv.s.o, false, random);
    for_each_thread_count([&] { check_convolution(conv, sums, multipliers); });
  }
}
