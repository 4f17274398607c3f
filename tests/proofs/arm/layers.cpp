// arm_layers             prints a line for each layer: name, multiply-adds, description
// arm_layers check       checks that each of the CPU's instruction sets equals the reference
// arm_layers NAME TIMES  computes a layer TIMES times; scripts/prove arm counts the instructions
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

using kernels::Conv2dShape;

struct Layer {
  const char* name;
  const char* description;
  Conv2dShape shape;
};

Conv2dShape pointwise(int64_t h, int64_t w, int64_t c, int64_t o) {
  return {.h = h, .w = w, .c = c, .o = o};
}
Conv2dShape conv(int64_t h, int64_t w, int64_t c, int64_t o, int64_t stride = 1) {
  return {.h = h,
          .w = w,
          .c = c,
          .o = o,
          .kh = 3,
          .kw = 3,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = 1,
          .pad_w = 1};
}
Conv2dShape depthwise(int64_t h, int64_t w, int64_t c, int64_t stride = 1) {
  Conv2dShape s = conv(h, w, c, c, stride);
  s.groups = c;
  return s;
}
Conv2dShape linear(int64_t inputs, int64_t outputs) { return {.c = inputs, .o = outputs}; }

// A selection of layers of the networks of MLPerf Tiny and of the examples.
const Layer kLayers[] = {
    {"pointwise_25x5x64_64", "DS-CNN 1x1, 25x5x64 -> 64", pointwise(25, 5, 64, 64)},
    {"pointwise_48x48x8_16", "MobileNet 1x1, 48x48x8 -> 16", pointwise(48, 48, 8, 16)},
    {"pointwise_24x24x16_32", "MobileNet 1x1, 24x24x16 -> 32", pointwise(24, 24, 16, 32)},
    {"pointwise_24x24x32_32", "MobileNet 1x1, 24x24x32 -> 32", pointwise(24, 24, 32, 32)},
    {"pointwise_12x12x64_64", "MobileNet 1x1, 12x12x64 -> 64", pointwise(12, 12, 64, 64)},
    {"pointwise_6x6x128_128", "MobileNet 1x1, 6x6x128 -> 128", pointwise(6, 6, 128, 128)},
    {"pointwise_3x3x256_256", "MobileNet 1x1, 3x3x256 -> 256", pointwise(3, 3, 256, 256)},
    {"conv_32x32x3_16", "ResNet-8 3x3, 32x32x3 -> 16", conv(32, 32, 3, 16)},
    {"conv_32x32x16_16", "ResNet-8 3x3, 32x32x16 -> 16", conv(32, 32, 16, 16)},
    {"conv_32x32x16_32_s2", "ResNet-8 3x3 stride 2, 32x32x16 -> 32", conv(32, 32, 16, 32, 2)},
    {"conv_16x16x32_32", "ResNet-8 3x3, 16x16x32 -> 32", conv(16, 16, 32, 32)},
    {"conv_8x8x64_64", "ResNet-8 3x3, 8x8x64 -> 64", conv(8, 8, 64, 64)},
    {"conv_1x1_32x32x16_32_s2",
     "ResNet-8 1x1 stride 2, 32x32x16 -> 32",
     {.h = 32, .w = 32, .c = 16, .o = 32, .stride_h = 2, .stride_w = 2}},
    {"conv_96x96x3_8_s2", "MobileNet 3x3 stride 2, 96x96x3 -> 8", conv(96, 96, 3, 8, 2)},
    {"conv_10x4_49x10x1_64",
     "DS-CNN 10x4 stride 2, 49x10x1 -> 64",
     {.h = 49,
      .w = 10,
      .c = 1,
      .o = 64,
      .kh = 10,
      .kw = 4,
      .stride_h = 2,
      .stride_w = 2,
      .pad_h = 4,
      .pad_w = 1}},
    {"conv_28x28x1_16", "examples 3x3, 28x28x1 -> 16", conv(28, 28, 1, 16)},
    {"conv_14x14x16_32", "examples 3x3, 14x14x16 -> 32", conv(14, 14, 16, 32)},
    {"depthwise_25x5x64", "DS-CNN depthwise 3x3, 25x5x64", depthwise(25, 5, 64)},
    {"depthwise_48x48x8", "MobileNet depthwise 3x3, 48x48x8", depthwise(48, 48, 8)},
    {"depthwise_48x48x16_s2",
     "MobileNet depthwise 3x3 stride 2, 48x48x16",
     depthwise(48, 48, 16, 2)},
    {"depthwise_6x6x128", "MobileNet depthwise 3x3, 6x6x128", depthwise(6, 6, 128)},
    {"linear_640_128", "autoencoder linear, 640 -> 128", linear(640, 128)},
    {"linear_128_128", "autoencoder linear, 128 -> 128", linear(128, 128)},
    {"linear_128_8", "autoencoder linear, 128 -> 8", linear(128, 8)},
    {"linear_784_256", "examples linear, 784 -> 256", linear(784, 256)},
};

// Some of these shapes leave vectors, tiles and groups of four partly filled. Others have
// convolution groups, strides or dilations.
const Layer kOddLayers[] = {
    {"linear_1_1", "", linear(1, 1)},
    {"linear_37_452", "", linear(37, 452)},
    {"rows_13_21_5", "", {.n = 13, .c = 21, .o = 5}},
    {"rows_7_67_47", "", {.n = 7, .c = 67, .o = 47}},
    {"padded", "", {.h = 9, .w = 7, .c = 5, .o = 11, .kh = 3, .kw = 2, .pad_h = 2, .pad_w = 1}},
    {"groups", "", {.n = 2, .h = 8, .w = 9, .c = 12, .o = 18, .kh = 3, .kw = 3, .groups = 3}},
    {"dilated",
     "",
     {.h = 11, .w = 12, .c = 4, .o = 9, .kh = 2, .kw = 3, .dilation_h = 2, .dilation_w = 3}},
    {"depthwise_5x3",
     "",
     {.h = 10, .w = 13, .c = 3, .o = 3, .kh = 5, .kw = 3, .pad_h = 2, .pad_w = 1, .groups = 3}},
    {"depthwise_4x1",
     "",
     {.h = 16, .w = 5, .c = 40, .o = 40, .kh = 4, .kw = 1, .stride_h = 2, .groups = 40}},
};

/// A layer whose operands depend only on its shape, packed for the chosen instruction set.
class Operands {
 public:
  /// shift: the shift of all multipliers; 0: a shift that suits the sums.
  Operands(const Conv2dShape& s, int32_t zero_x, int32_t shift)
      : s_(s),
        x_(s.x_elements()),
        plain_(s.weight_elements()),
        acc_(s.y_elements()),
        y_(s.y_elements()) {
    uint64_t state = 0;
    const auto below = [&](uint64_t n) {
      return static_cast<int32_t>(SplitMix64::mix(state += SplitMix64::kStep) % n);
    };
    Buffer<int32_t> bias(s.o), m0(s.o), shifts(s.o);
    for (uint8_t& x : x_) x = static_cast<uint8_t>(below(256));
    for (int8_t& w : plain_) w = static_cast<int8_t>(below(256) - 128);
    for (int32_t& b : bias) b = below(20001) - 10000;
    const Multiplier usual = make_multiplier(1.0 / (64.0 * static_cast<double>(s.reduction())));
    for (int32_t& m : m0) m = usual.m0 - below(1 << 20);
    std::fill(shifts.begin(), shifts.end(), shift == 0 ? usual.shift : shift);
    w_ = kernels::PackedWeightsS8(s, plain_.data());
    const kernels::RequantizeU8 requantize{
        .m0 = m0.data(), .shift = shifts.data(), .zero_point = 117, .lo = 3, .hi = 250};
    params_ = kernels::ProductParams(w_, zero_x, bias.data(), &requantize);
  }

  const Buffer<int32_t>& sums() {
    kernels::conv2d_u8s8_s32(s_, x_.data(), w_, params_, acc_.data());
    return acc_;
  }
  const Buffer<uint8_t>& codes() {
    kernels::conv2d_u8s8_u8(s_, x_.data(), w_, params_, y_.data());
    return y_;
  }

 private:
  Conv2dShape s_;
  Buffer<uint8_t> x_;
  Buffer<int8_t> plain_;
  kernels::PackedWeightsS8 w_;
  kernels::ProductParams params_;
  Buffer<int32_t> acc_;
  Buffer<uint8_t> y_;
};

/// Whether every usable instruction set computes the reference's sums and codes.
bool all_equal(const char* name, const Conv2dShape& s, int32_t zero_x, int32_t shift) {
  set_isa(Isa::kReference);
  Operands reference(s, zero_x, shift);
  const Buffer<int32_t>& sums = reference.sums();
  const Buffer<uint8_t>& codes = reference.codes();
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    Operands operands(s, zero_x, shift);
    bool equal =
        std::ranges::equal(sums, operands.sums()) && std::ranges::equal(codes, operands.codes());
    // This instruction set must also compute with weights that were packed for the reference.
    equal = equal && std::ranges::equal(reference.sums(), operands.sums()) &&
            std::ranges::equal(reference.codes(), operands.codes());
    if (equal) continue;
    std::cout << "differs: " << name << ", zero point " << zero_x << ", shift " << shift << ", "
              << isa_name(isa) << '\n';
    return false;
  }
  return true;
}

int check() {
  for (const Layer& layer : kLayers) {
    if (!all_equal(layer.name, layer.shape, 0, 0)) return 1;
  }
  for (const Layer& layer : kOddLayers) {
    for (const int32_t zero_x : {0, 77, 128, 255}) {
      for (const int32_t shift : {0, 31, 33}) {
        if (!all_equal(layer.name, layer.shape, zero_x, shift)) return 1;
      }
    }
  }
  std::cout << "equal:";
  for (const Isa isa : usable_isas()) std::cout << ' ' << isa_name(isa);
  std::cout << '\n';
  return 0;
}

int list() {
  for (const Layer& layer : kLayers) {
    std::cout << layer.name << '\t' << layer.shape.y_elements() * layer.shape.reduction() << '\t'
              << layer.description << '\n';
  }
  return 0;
}

int compute(const std::string& name, int64_t times) {
  for (const Layer& layer : kLayers) {
    if (name != layer.name) continue;
    Operands operands(layer.shape, 0, 0);
    for (int64_t i = 0; i < times; ++i) operands.codes();
    return 0;
  }
  std::cerr << "arm_layers: no layer " << name << '\n';
  return 2;
}

}  // namespace
}  // namespace quantrain

int main(int argc, char** argv) {
  if (argc == 1) return quantrain::list();
  if (argc == 2 && std::string(argv[1]) == "check") return quantrain::check();
  if (argc == 3) return quantrain::compute(argv[1], std::atoll(argv[2]));
  std::cerr << "usage: arm_layers [check | NAME TIMES]\n";
  return 2;
}
