#include "tests/framework/kernels/integer_convolution.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

const Conv2dShape kShapes[] = {
    {.n = 1, .h = 4, .w = 4, .c = 48, .o = 38, .kh = 3, .kw = 3, .groups = 2},
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

TEST_CASE("packed weights give the weights back on every instruction set", "[kernels][integer]") {
  Random random(6);
  for (const Conv2dShape& shape : kShapes) {
    const Convolution conv(shape, random);
    for_each_isa([&] {
      const PackedWeightsS8 packed(shape, conv.w.data());
      const int64_t count = shape.weight_elements();
      std::vector<int8_t> w(conv.w.size());
      packed.unpack(0, count / 3, w.data());
      packed.unpack(count / 3, count - count / 3, w.data() + count / 3);
      CHECK(w == conv.w);
      CHECK(packed.bytes() == PackedWeightsS8::planned(shape).bytes());
    });
  }
}

TEST_CASE("integer convolutions with a padding of its own for each side are exact",
          "[kernels][integer]") {
  Random random(25);
  for (const int64_t groups : {1, 2, 16}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const auto& [pad, end] :
           {std::pair<int64_t, int64_t>{0, 1}, {0, 2}, {1, -1}, {2, -1}, {1, 1}, {3, -3}}) {
        for (const bool rows : {false, true}) {
          Conv2dShape shape{.n = 2, .h = 9, .w = 8, .c = 16, .o = 16, .kh = 3, .kw = 3};
          shape.groups = groups;
          shape.stride_h = shape.stride_w = stride;
          (rows ? shape.pad_h : shape.pad_w) = pad;
          (rows ? shape.end_h : shape.end_w) = end;
          const Convolution conv(shape, random);
          const std::vector<int32_t> sums = conv.sums();
          const Multipliers usual(shape.o, false, random);
          CAPTURE(shape.end_h, shape.end_w);
          for_each_isa([&] { check_convolution(conv, sums, usual); });
        }
      }
    }
  }
}

TEST_CASE("dilated integer convolutions are exact on every instruction set", "[kernels][integer]") {
  Random random(15);
  for (const int64_t channels : {1, 2, 3, 4, 16}) {
    for (const int64_t groups : {1, 2}) {
      for (const int64_t kernel : {1, 2, 3}) {
        for (const int64_t stride : {1, 2, 3}) {
          for (const int64_t pad : {0, 1, 3}) {
            for (const int64_t dilation : {2, 3, 5}) {
              if (channels % groups != 0 || random.below(3) != 0) continue;
              Conv2dShape s{.n = 2, .h = 9, .w = 11, .c = channels, .o = 6};
              s.kh = s.kw = kernel;
              s.stride_h = s.stride_w = stride;
              s.pad_h = s.pad_w = pad;
              s.groups = groups;
              s.dilation_h = dilation;
              s.dilation_w = random.below(2) == 0 ? dilation : 1;
              if (random.below(4) == 0) std::swap(s.dilation_h, s.dilation_w);
              if (s.window_h() > s.h + 2 * pad || s.window_w() > s.w + 2 * pad) continue;
              Convolution conv(s, random);
              if (random.below(2) == 0) conv.zero_x = 0;
              const std::vector<int32_t> sums = conv.sums();
              const Multipliers multipliers(s.o, random.below(4) == 0, random);
              for_each_isa([&] { check_convolution(conv, sums, multipliers); });
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a dilated integer convolution of many rows is split into bands", "[kernels][integer]") {
  Random random(16);
  Conv2dShape s{.n = 2, .h = 150, .w = 40, .c = 16, .o = 32, .kh = 3, .kw = 3};
  s.dilation_h = s.pad_h = 7;
  s.dilation_w = s.pad_w = 4;
  const Convolution conv(s, random);
  const std::vector<int32_t> sums = conv.sums();
  const Multipliers multipliers(s.o, false, random);
  for_each_thread_count([&] { check_convolution(conv, sums, multipliers); });
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
