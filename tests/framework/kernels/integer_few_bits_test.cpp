#include <algorithm>

#include "framework/kernels/dispatch/dispatch.hpp"
#include "tests/framework/kernels/integer_convolution.hpp"
#include "tests/memory_taken.hpp"
#include "tests/sanitized.hpp"

// Products whose weights have fewer than 8 bits, and products of bits. Instruction sets without
// kernels for them take those of 8 bits.
using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

const ProductBits kBinary{.weights = 1, .binary = true};

/// The same bits, kept in few bytes.
ProductBits small(ProductBits bits) {
  bits.kept = true;
  bits.small = true;
  return bits;
}

/// Replaces the operands of a convolution by operands of few bits.
Convolution with_bits(Convolution conv, ProductBits bits, Random& random) {
  const int64_t levels = int64_t{1} << bits.weights;
  for (int8_t& w : conv.w) {
    const auto code = static_cast<int>(random.below(levels));
    w = static_cast<int8_t>(bits.weights == 1 ? 2 * code - 1 : code - (1 << (bits.weights - 1)));
  }
  if (!bits.binary) return conv;
  for (uint8_t& x : conv.x) x &= 1;
  conv.zero_x = 0;
  return conv;
}

void check_few_bits(const Conv2dShape& shape, ProductBits bits, Random& random) {
  const Convolution conv = with_bits(Convolution(shape, random), bits, random);
  const std::vector<int32_t> sums = conv.sums();
  const Multipliers multipliers(shape.o, random.below(4) == 0, random);
  for_each_isa([&] {
    check_convolution(conv, sums, multipliers, bits);
    if (bits.weights <= 4) check_convolution(conv, sums, multipliers, small(bits));
  });
}

/// A linear layer of n rows, as a convolution.
Conv2dShape linear_shape(int64_t n, int64_t k, int64_t o) { return {.n = n, .c = k, .o = o}; }

}  // namespace

TEST_CASE("products with few bits are exact at awkward sizes on every instruction set",
          "[kernels][integer][few_bits]") {
  Random random(1);
  for (const int64_t o : {1, 7, 8, 9, 16, 17, 31, 33, 48, 64, 65, 100}) {
    for (const int64_t k : {1, 4, 5, 8, 31, 33, 63, 64, 65, 100}) {
      const int64_t n = 1 + random.below(13);
      for (const ProductBits bits : {ProductBits{6}, ProductBits{4}, ProductBits{1}, kBinary})
        check_few_bits(linear_shape(n, k, o), bits, random);
    }
  }
  for (int64_t n = 0; n <= 17; ++n) {
    check_few_bits(linear_shape(n, 67, 37), {3}, random);
    check_few_bits(linear_shape(n, 67, 70), {1}, random);
    check_few_bits(linear_shape(n, 67, 70), kBinary, random);
  }
  // More rows than a block has.
  for (const int bits : {3, 2, 1}) check_few_bits(linear_shape(500, 37, 70), {bits}, random);
  // More words than the counts of bytes can add up.
  check_few_bits(linear_shape(3, 32 * 70 + 9, 19), kBinary, random);
}

TEST_CASE("products with few bits do not saturate at the extremes of their operands",
          "[kernels][integer][few_bits]") {
  Random random(2);
  for (const int bits : {1, 2, 4, 5, 6, 7, 8}) {
    for (const int sign : {1, -1}) {
      const int most = 1 << (bits - 1);
      const int w = sign < 0 ? -most : std::max(most - 1, 1);
      for (const int32_t zero_x : {0, 255}) {
        Convolution conv(linear_shape(9, 67, 35), random);
        conv.zero_x = zero_x;
        conv.x.assign(conv.x.size(), zero_x == 0 ? 255 : 0);
        conv.w.assign(conv.w.size(), static_cast<int8_t>(w));
        const std::vector<int32_t> sums = conv.sums();
        const Multipliers multipliers(35, false, random);
        for_each_isa([&] {
          check_convolution(conv, sums, multipliers, {bits});
          check_convolution(conv, sums, multipliers, small({bits}));
        });
      }
    }
  }
}

TEST_CASE("convolutions with few bits are exact on every instruction set",
          "[kernels][integer][few_bits]") {
  Random random(3);
  const Conv2dShape shapes[] = {
      {.n = 2, .h = 5, .w = 6, .c = 1, .o = 17, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
      {.n = 1, .h = 6, .w = 5, .c = 12, .o = 33, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
      {.n = 1, .h = 6, .w = 7, .c = 40, .o = 70, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
      {.n = 1, .h = 7, .w = 7, .c = 35, .o = 9, .kh = 5, .kw = 3, .stride_h = 2, .stride_w = 2},
      {.n = 2,
       .h = 6,
       .w = 6,
       .c = 64,
       .o = 20,
       .kh = 3,
       .kw = 3,
       .dilation_h = 2,
       .dilation_w = 2},
      {.n = 2, .h = 4, .w = 5, .c = 70, .o = 16},
      {.n = 1, .h = 5, .w = 5, .c = 66, .o = 24, .stride_h = 2, .stride_w = 2},
      {.n = 1, .h = 5, .w = 5, .c = 64, .o = 48, .kh = 3, .kw = 3, .pad_h = 1, .groups = 2},
      {.n = 1, .h = 6, .w = 6, .c = 24, .o = 24, .kh = 3, .kw = 3, .pad_h = 1, .groups = 24},
      // Few pixels: fields are taken apart in registers. Many: a call has not all of them.
      {.n = 3, .h = 5, .w = 4, .c = 21, .o = 64, .kh = 3, .kw = 2},
      {.n = 3, .h = 5, .w = 4, .c = 21, .o = 66, .kh = 3, .kw = 2},
      {.n = 1, .h = 25, .w = 24, .c = 5, .o = 18, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1}};
  for (const Conv2dShape& shape : shapes) {
    for (const ProductBits bits :
         {ProductBits{6}, ProductBits{4}, ProductBits{2}, ProductBits{1}, kBinary})
      check_few_bits(shape, bits, random);
  }
  // Rows of the kernel beside the image are left out if zero_x is the kernels' offset.
  for (const int64_t outputs : {70, 64}) {  // unpacked, and taken apart in registers
    Conv2dShape shape = shapes[2];
    shape.o = outputs;
    Convolution conv(shape, random);
    const Multipliers multipliers(outputs, false, random);
    for (const int bits : {4, 2, 1}) {
      conv = with_bits(conv, {bits}, random);
      for (const int32_t zero_x : {0, 128}) {
        conv.zero_x = zero_x;
        const std::vector<int32_t> sums = conv.sums();
        for_each_isa([&] { check_convolution(conv, sums, multipliers, small({bits})); });
      }
    }
  }
}

TEST_CASE("large linear layers with few bits are exact on every instruction set",
          "[kernels][integer][few_bits]") {
  Random random(4);
  const Conv2dShape shape = linear_shape(40, 2053, 1027);
  // Samples of one row: 24 and more of them unpack panels first where dot products are one
  // instruction. Samples of so many rows have bytes.
  const Conv2dShape sample = linear_shape(1, 2053, 1027);
  for (const int bits : {4, 2, 1}) {
    Convolution conv = with_bits(Convolution(shape, random), {bits}, random);
    const std::vector<int32_t> sums = conv.sums();
    for_each_isa([&] {
      const PackedWeightsS8 w(sample, conv.w.data(), {bits, false, true});
      CAPTURE(static_cast<int>(w.layout().few));
      if (w.layout().per_byte() > 1) {
        // The groups of 4 * per_byte() terms, and panels of at most kWidestPanel outputs.
        CHECK(PackedWeightsS8::planned(sample, {bits, false, true}).bytes() <
              (1027 + 64) * (2053 + 32 / bits) * bits / 8);
      }
      const ProductParams params(w, conv.zero_x, conv.bias.data(), nullptr);
      for (const int64_t rows : {1, 2, 7, 14, 24, 40}) {
        const Guarded x(std::vector<uint8_t>(conv.x.begin(), conv.x.begin() + rows * shape.c));
        std::vector<int32_t> acc(static_cast<size_t>(rows * shape.o));
        gemm_u8s8_s32(rows, shape.c, x.data(), w, params, acc.data());
        CHECK(std::equal(acc.begin(), acc.end(), sums.begin()));
      }
    });
  }
}

// 2^21 + 2048 weights. The windows of most outputs lie beside the image.
TEST_CASE("a padded convolution of one pixel with large weights is exact on every instruction set",
          "[kernels][integer][few_bits]") {
  Random random(5);
  const Conv2dShape shape{.h = 1, .w = 1, .c = 2048, .o = 1025, .pad_h = 1, .pad_w = 1};
  const Multipliers multipliers(shape.o, false, random);
  for (const int bits : {4, 2}) {
    Convolution conv = with_bits(Convolution(shape, random), {bits}, random);
    for (const int32_t zero_x : {0, 128, 77}) {
      conv.zero_x = zero_x;
      const std::vector<int32_t> sums = conv.sums();
      for_each_isa([&] { check_convolution(conv, sums, multipliers, {bits, false, true}); });
    }
  }
}

TEST_CASE("a sum of no segments is its start value on every instruction set",
          "[kernels][integer][few_bits]") {
  const Conv2dShape shape = linear_shape(1, 2048, 1025);
  const std::vector<int8_t> weights(at(shape.weight_elements()), 1);
  const std::vector<int32_t> start(at(shape.o + kWidestPanel), 5);
  const std::vector<uint8_t> row(at(shape.c), 255);
  const uint8_t* const x = row.data();
  for (const ProductBits bits : {ProductBits{4, false, true}, {2, false, true}, {6}, {8}}) {
    for_each_isa([&] {
      const PackedWeightsS8 w(shape, weights.data(), bits);
      std::vector<int32_t> acc(at(shape.o), -1);
      DotU8S8 p{};
      p.rows = 1;
      p.outputs = shape.o;
      p.quads = w.quads();
      p.x = &x;
      p.w = w.data();
      p.panel = w.panel_bytes();
      p.layout = w.layout();
      p.start = start.data();
      p.acc = acc.data();
      p.stride = shape.o;
      integer_table().dot_u8s8(p);
      CHECK(acc == std::vector<int32_t>(at(shape.o), 5));
    });
  }
}

TEST_CASE("layouts of fewer bits are chosen where they pay", "[kernels][integer][few_bits]") {
  const auto few = [](const Conv2dShape& shape, ProductBits bits) {
    return PackedWeightsS8::planned(shape, bits).layout().few;
  };
  for_each_isa([&] {
    // Where dot products of bytes are one instruction, many rows take bytes.
    const ProductBits four{4, false, true};
    const bool one_instruction = !PackedWeightsS8::planned({.c = 64, .o = 64}).layout().pairs;
    const FewBits one = few(linear_shape(1, 2048, 1025), four);
    CHECK(few(linear_shape(23, 2048, 1025), four) == one);
    CHECK(few(linear_shape(24, 2048, 1025), four) == (one_instruction ? FewBits::kNone : one));
    // A byte of bits for each tap of one channel is no smaller than a byte for each weight.
    CHECK(few({.w = 200, .c = 1, .o = 64, .kw = 160}, kBinary) != FewBits::kBits);
    CHECK(few({.w = 200, .c = 3, .o = 64, .kw = 160}, kBinary) != FewBits::kBits);
    CHECK(few({.w = 200, .c = 4, .o = 64, .kw = 160}, kBinary) ==
          few(linear_shape(1, 640, 64), kBinary));
  });
}

TEST_CASE("weights that are kept small take their bits, on every instruction set",
          "[kernels][integer][few_bits]") {
  const Conv2dShape shapes[] = {linear_shape(1, 784, 256),
                                linear_shape(1, 256, 10),
                                {.h = 8, .w = 8, .c = 64, .o = 64, .kh = 3, .kw = 3},
                                {.h = 8, .w = 8, .c = 32, .o = 32, .kh = 3, .kw = 3},
                                {.h = 8, .w = 8, .c = 32, .o = 10, .kh = 3, .kw = 3},
                                {.h = 8, .w = 8, .c = 3, .o = 16, .kh = 3, .kw = 3},
                                {.h = 8, .w = 8, .c = 24, .o = 24, .kh = 3, .kw = 3, .groups = 24}};
  for_each_isa([&] {
    for (const Conv2dShape& shape : shapes) {
      for (const ProductBits bits : {ProductBits{8},
                                     ProductBits{5},
                                     ProductBits{4},
                                     ProductBits{2},
                                     ProductBits{1},
                                     kBinary}) {
        CAPTURE(shape.c, shape.o, shape.groups, bits.weights, bits.binary);
        const int64_t fast =
            PackedWeightsS8::planned(shape, {bits.weights, bits.binary, true}).bytes();
        const int64_t kept = PackedWeightsS8::planned(shape, small(bits)).bytes();
        CHECK(kept <= fast);
        const bool whole = shape.o % 64 == 0 && shape.c % 32 == 0;
        if (whole && bits.weights <= 4) CHECK(kept == shape.weight_elements() * bits.weights / 8);
      }
    }
  });
}

TEST_CASE("products with weights that are kept small take the scratch memory that is planned",
          "[kernels][integer][few_bits]") {
  if (kSanitized) return;  // as for bytes
  Random random(7);
  const Conv2dShape image{.n = 2, .h = 9, .w = 9, .c = 20, .o = 70, .kh = 3, .kw = 3, .pad_h = 1};
  // Its unpacked weights take more than 256 KiB, so one panel at a time is unpacked.
  const Conv2dShape large{.h = 3, .w = 4, .c = 96, .o = 320, .kh = 3, .kw = 3};
  for_each_isa([&] {
    for (const Conv2dShape& shape :
         {linear_shape(3, 100, 70), linear_shape(40, 100, 70), image, large}) {
      for (const int bits : {4, 1}) {
        CAPTURE(shape.n, shape.o, bits);
        const Convolution conv = with_bits(Convolution(shape, random), {bits}, random);
        const PackedWeightsS8 w(shape, conv.w.data(), small({bits}));
        const ProductParams params(w, conv.zero_x, nullptr, nullptr);
        std::vector<int32_t> acc(at(shape.y_elements()));
        const int64_t taken =
            memory_taken([&] { conv2d_u8s8_s32(shape, conv.x.data(), w, params, acc.data()); });
        CHECK(taken <= 5 * (conv2d_scratch(shape, w) + 512) / 4);
      }
    }
  });
}

TEST_CASE("products of bits plan scratch memory for the packed codes",
          "[kernels][integer][few_bits]") {
  for_each_isa([] {
    const auto w = PackedWeightsS8::planned({.c = 640, .o = 6}, kBinary);
    CHECK(gemm_scratch(3, w) == (w.layout().few == FewBits::kBits ? 3 * 80 : 0));
  });
}

TEST_CASE("codes are packed to bits on every instruction set", "[kernels][integer][few_bits]") {
  Random random(6);
  for (const int64_t channels : kSizes) {
    for (const int64_t rows : {1, 3}) {
      CAPTURE(channels, rows);
      const std::vector<uint8_t> x = random_codes(rows * channels, random);
      const int64_t bytes_of_row = (channels + 7) / 8;
      std::vector<uint8_t> expected(static_cast<size_t>(rows * bytes_of_row), 0);
      for (int64_t i = 0; i < rows * channels; ++i) {
        const int64_t c = i % channels;
        expected[at(i / channels * bytes_of_row + c / 8)] |=
            static_cast<uint8_t>((x[at(i)] & 1) << c % 8);
      }
      for_each_isa([&] {
        Guarded bits(std::vector<uint8_t>(expected.size(), 0x55));
        const Guarded from(x);
        integer_table().pack_bits_u8(rows, channels, from.data(), bits.data());
        CHECK(bits.values() == expected);
      });
    }
  }
}
