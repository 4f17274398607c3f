#include "tests/proofs/c99/layers.hpp"

#include <cmath>

#include "framework/core/random.hpp"

namespace quantrain::proofs {
namespace {

using kernels::Conv2dShape;

struct NamedShape {
  const char* name;
  const char* description;
  Conv2dShape shape;
  bool linear = false;
};

const NamedShape kShapes[] = {
    {"conv_28x28x1_16",
     "conv 3x3 pad 1, 28x28x1 -> 16",
     {.h = 28, .w = 28, .c = 1, .o = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1}},
    {"conv_32x32x3_16",
     "conv 3x3 pad 1, 32x32x3 -> 16",
     {.h = 32, .w = 32, .c = 3, .o = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1}},
    {"conv_14x14x16_32",
     "conv 3x3 pad 1, 14x14x16 -> 32",
     {.h = 14, .w = 14, .c = 16, .o = 32, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1}},
    {"conv_32x32x16_16",
     "conv 3x3 pad 1, 32x32x16 -> 16",
     {.h = 32, .w = 32, .c = 16, .o = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1}},
    {"conv_26x26x32_64",
     "conv 3x3, 26x26x32 -> 64",
     {.h = 26, .w = 26, .c = 32, .o = 64, .kh = 3, .kw = 3}},
    {"conv_1x1_25x5x64_64", "conv 1x1, 25x5x64 -> 64", {.h = 25, .w = 5, .c = 64, .o = 64}},
    {"conv_10x4_49x10x1_64",
     "conv 10x4 stride 2 pad 4,1, 49x10x1 -> 64",
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
    {"depthwise_25x5x64",
     "depthwise 3x3 pad 1, 25x5x64",
     {.h = 25, .w = 5, .c = 64, .o = 64, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 64}},
    {"linear_784_256", "linear 784 -> 256", {.c = 784, .o = 256}, true},
};

constexpr int kZero = 128;  // zero point of input and output

// Weights are distributed uniformly. Each channel's scale is chosen so that the standard deviation
// of its sums is 30 to 40 codes of the output.
integer::QuantizedProduct random_product(const Conv2dShape& shape, int bits, uint64_t seed) {
  Random random(seed);
  const int64_t levels = int64_t{1} << bits;
  std::vector<int8_t> weights(static_cast<size_t>(shape.weight_elements()));
  for (int8_t& w : weights) w = static_cast<int8_t>(random.below(levels) - levels / 2);
  std::vector<int32_t> bias(static_cast<size_t>(shape.o));
  for (int32_t& b : bias) b = static_cast<int32_t>(random.below(2001) - 1000);

  const double code = 256.0 / std::sqrt(12.0), weight = static_cast<double>(levels) / 256.0 * code;
  const double deviation = code * weight * std::sqrt(static_cast<double>(shape.reduction()));
  std::vector<double> scale;
  for (int64_t o = 0; o < shape.o; ++o)
    scale.push_back(40.0 / deviation * static_cast<double>(random.uniform(0.75f, 1.0f)));
  const QParams y{.type = {}, .axis = -1, .scale = {1.0f}, .zero_point = {kZero}};
  return {.zero_x = kZero,
          .weight = {std::move(weights), bits},
          .bias = std::move(bias),
          .output = integer::requantization(scale, y, Activation::kNone)};
}

integer::Program program(const NamedShape& named, int bits, uint64_t seed) {
  const Conv2dShape& s = named.shape;
  const QParams codes{.type = {}, .axis = -1, .scale = {1.0f}, .zero_point = {kZero}};
  integer::Program result;
  result.inputs = {0};
  result.outputs = {1};
  integer::QuantizedProduct product = random_product(s, bits, seed);
  if (named.linear) {
    result.values = {{.name = "input", .shape = {s.c}, .params = codes},
                     {.name = "layer", .shape = {s.o}, .params = codes}};
    result.steps.push_back(
        {.operation =
             integer::QuantizedLinear{.inputs = s.c, .outputs = s.o, .product = std::move(product)},
         .inputs = {0},
         .output = 1});
  } else {
    result.values = {{.name = "input", .shape = {s.h, s.w, s.c}, .params = codes},
                     {.name = "layer", .shape = {s.oh(), s.ow(), s.o}, .params = codes}};
    result.steps.push_back(
        {.operation = integer::QuantizedConv2d{.shape = s, .product = std::move(product)},
         .inputs = {0},
         .output = 1});
  }
  integer::validate(result);
  return result;
}

}  // namespace

std::vector<Layer> layers(const std::vector<int>& bits) {
  std::vector<Layer> result;
  for (const NamedShape& named : kShapes) {
    for (const int b : bits) {
      result.push_back({.name = std::string(named.name) + "_w" + std::to_string(b),
                        .description = named.description,
                        .bits = b,
                        .program = program(named, b, result.size())});
    }
  }
  return result;
}

}  // namespace quantrain::proofs
