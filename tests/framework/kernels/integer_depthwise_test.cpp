#include "tests/framework/kernels/integer_convolution.hpp"
#include "tests/sanitized.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

struct Extent {
  int64_t h, w;
};

/// Numbers of channels around the 4, 8 and 16 lanes of vectors and around blocks of 64 channels.
/// With the smallest numbers, a vector holds several pixels.
constexpr std::initializer_list<int64_t> kChannels = {
    2, 3, 8, 15, 16, 17, 24, 63, 64, 65, 130, 144};
/// Kernels take the rows of a window four at a time, as quads. These windows have a part of a quad,
/// whole quads, or both; some have one column.
const Extent kWindows[] = {{1, 1}, {3, 3}, {5, 5}, {9, 1}, {1, 5}, {4, 3}, {2, 7}, {8, 2}};
/// Some images have fewer columns than a tile, others have more. One has a single row. Some have an
/// odd number of rows, so their last row is not part of a pair of rows.
const Extent kImages[] = {{1, 1}, {2, 3}, {7, 1}, {9, 8}, {5, 11}, {12, 5}, {33, 17}};

Conv2dShape depthwise(int64_t channels, Extent image, Extent window, int64_t stride, int64_t pad) {
  return {.n = 2,
          .h = image.h,
          .w = image.w,
          .c = channels,
          .o = channels,
          .kh = window.h,
          .kw = window.w,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad,
          .groups = channels};
}

bool fits(const Conv2dShape& s) {
  return s.h + 2 * s.pad_h >= s.window_h() && s.w + 2 * s.pad_w >= s.window_w();
}

/// All of `channels`, or every second one in builds with sanitizers.
std::vector<int64_t> channels_of(std::initializer_list<int64_t> channels) {
  std::vector<int64_t> chosen;
  for (size_t i = kSanitized ? 1 : 0; i < channels.size(); i += kSanitized ? 2 : 1)
    chosen.push_back(channels.begin()[i]);
  return chosen;
}

void check_everywhere(const Convolution& conv, Random& random) {
  const std::vector<int32_t> sums = conv.sums();
  const Multipliers usual(conv.s.o, false, random);
  const Multipliers any(conv.s.o, true, random);
  for_each_isa([&] {
    check_convolution(conv, sums, usual);
    check_convolution(conv, sums, any);
  });
}

}  // namespace

TEST_CASE("depthwise convolutions with any channels and windows are exact on every instruction set",
          "[kernels][integer][depthwise]") {
  Random random(8);
  for (const int64_t channels : channels_of(kChannels)) {
    for (const Extent& window : kWindows) {
      for (const int64_t stride : {1, 2}) {
        for (const int64_t pad : {0, 1, 2}) {
          const Extent image = kImages[random.below(std::size(kImages))];
          const Conv2dShape shape = depthwise(channels, image, window, stride, pad);
          if (fits(shape)) check_everywhere(Convolution(shape, random), random);
        }
      }
    }
  }
}

TEST_CASE("depthwise convolutions of images of any size are exact on every instruction set",
          "[kernels][integer][depthwise]") {
  Random random(9);
  for (const Extent& image : kImages) {
    for (const int64_t channels : {3, 16, 65, 128}) {
      for (const int64_t stride : {1, 2}) {
        const Conv2dShape shape = depthwise(channels, image, {3, 3}, stride, 1);
        check_everywhere(Convolution(shape, random), random);
      }
    }
  }
}

TEST_CASE("depthwise convolutions with different strides and padding for each axis are exact",
          "[kernels][integer][depthwise]") {
  Random random(10);
  for (const int64_t channels : {6, 64}) {
    Conv2dShape shape = depthwise(channels, {11, 10}, {3, 3}, 1, 0);
    shape.stride_h = 3;
    shape.pad_w = 2;
    check_everywhere(Convolution(shape, random), random);
    shape = depthwise(channels, {11, 10}, {5, 2}, 1, 1);
    shape.stride_w = 4;
    shape.pad_h = 4;
    check_everywhere(Convolution(shape, random), random);
    for (const int64_t stride : {1, 2}) {
      for (const auto& [pad, end] : {std::pair<int64_t, int64_t>{0, 1}, {0, 2}, {2, -2}, {2, -1}}) {
        shape = depthwise(channels, {8, 10}, {3, 3}, stride, pad);
        shape.end_h = end;
        check_everywhere(Convolution(shape, random), random);
        shape.end_w = end;
        check_everywhere(Convolution(shape, random), random);
      }
    }
  }
}

TEST_CASE("dilated depthwise convolutions are exact on every instruction set",
          "[kernels][integer][depthwise][serial]") {
  Random random(14);
  for (const int64_t channels : channels_of({2, 3, 16, 65, 24, 144})) {
    for (const Extent& window : kWindows) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t dilation : {2, 3, 5}) {
          const Extent image = kImages[random.below(std::size(kImages))];
          Conv2dShape shape = depthwise(channels, image, window, stride, random.below(4));
          shape.dilation_h = dilation;
          shape.dilation_w = random.below(2) == 0 ? dilation : 1 + random.below(4);
          if (fits(shape)) check_everywhere(Convolution(shape, random), random);
          shape.dilation_h = 1;
          if (fits(shape)) check_everywhere(Convolution(shape, random), random);
        }
      }
    }
  }
}

TEST_CASE("dilated depthwise convolutions are the same for any number of threads",
          "[kernels][integer][depthwise]") {
  Random random(15);
  for (const int64_t channels : {8, 192}) {
    Conv2dShape shape = depthwise(channels, {25, 23}, {3, 3}, 1, 3);
    shape.n = 7;
    shape.dilation_h = 3;
    shape.dilation_w = 2;
    const Convolution conv(shape, random);
    const std::vector<int32_t> sums = conv.sums();
    const Multipliers multipliers(channels, false, random);
    for_each_thread_count([&] { check_convolution(conv, sums, multipliers); });
  }
}

TEST_CASE("depthwise convolutions at the extremes of their operands do not saturate",
          "[kernels][integer][depthwise]") {
  Random random(11);
  for (const Extent& window : {Extent{3, 3}, Extent{5, 5}, Extent{9, 1}}) {
    Convolution conv(depthwise(16, {11, 9}, window, 1, 1), random);
    for (const int x : {0, 255}) {
      for (const int zero_x : {0, 255}) {
        for (const int w : {127, -127, -128}) {
          conv.x.assign(conv.x.size(), static_cast<uint8_t>(x));
          conv.w.assign(conv.w.size(), static_cast<int8_t>(w));
          conv.zero_x = zero_x;
          check_everywhere(conv, random);
        }
      }
    }
  }
}

TEST_CASE("depthwise convolutions are the same for any number of threads",
          "[kernels][integer][depthwise]") {
  Random random(12);
  for (const int64_t channels : {8, 192}) {
    Conv2dShape shape = depthwise(channels, {25, 23}, {3, 3}, 1, 1);
    shape.n = 7;
    const Convolution conv(shape, random);
    const std::vector<int32_t> sums = conv.sums();
    const Multipliers multipliers(channels, false, random);
    for_each_thread_count([&] { check_convolution(conv, sums, multipliers); });
  }
}

TEST_CASE("depthwise weights packed for another instruction set are packed again",
          "[kernels][integer][depthwise]") {
  Random random(13);
  const Convolution conv(depthwise(40, {6, 7}, {3, 3}, 1, 1), random);
  const std::vector<int32_t> sums = conv.sums();
  const PackedWeightsS8 w(conv.s, conv.w.data());
  const ProductParams params(w, conv.zero_x, conv.bias.data(), nullptr);
  for_each_isa([&] {
    std::vector<int32_t> acc(sums.size(), -1);
    conv2d_u8s8_s32(conv.s, conv.x.data(), w, params, acc.data());
    CHECK(first_difference(acc, sums) == -1);
  });
}
