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

// Codes of 1 bit are 0 and 1. Those of 8 bits have the zero point 128.
QParams codes(int bits) {
  return {.type = {.bits = bits}, .axis = -1, .scale = {1.0f}, .zero_point = {bits == 1 ? 0 : 128}};
}

// Weights are distributed uniformly. Each channel's scale is chosen so that the standard deviation
// of its sums is 30 to 40 codes of an output of 8 bits, or about one code of 1 bit.
integer::QuantizedProduct random_product(const Conv2dShape& shape,
                                         int bits,
                                         int activation_bits,
                                         uint64_t seed) {
  Random random(seed);
  const int64_t levels = int64_t{1} << bits;
  std::vector<int8_t> weights(static_cast<size_t>(shape.weight_elements()));
  for (int8_t& w : weights) {
    const int64_t level = random.below(levels);
    w = static_cast<int8_t>(bits == 1 ? 2 * level - 1 : level - levels / 2);
  }
  const bool binary = activation_bits == 1;
  const int64_t most = binary ? 3 : 1000;
  std::vector<int32_t> bias(static_cast<size_t>(shape.o));
  for (int32_t& b : bias) b = static_cast<int32_t>(random.below(2 * most + 1) - most);

  const double code = binary ? 0.7 : 256.0 / std::sqrt(12.0);
  const double weight = bits == 1 ? 1.0 : static_cast<double>(levels) / std::sqrt(12.0);
  const double deviation = code * weight * std::sqrt(static_cast<double>(shape.reduction()));
  std::vector<double> scale;
  for (int64_t o = 0; o < shape.o; ++o)
    scale.push_back((binary ? 1.0 : 40.0) / deviation *
                    static_cast<double>(random.uniform(0.75f, 1.0f)));
  const QParams y = codes(activation_bits);
  return {.zero_x = y.zero_point[0],
          .x_bits = activation_bits,
          .weight = {std::move(weights), bits},
          .bias = std::move(bias),
          .output = integer::requantization(scale, y, Activation::kNone)};
}

integer::Program program(const NamedShape& named, int bits, int activation_bits, uint64_t seed) {
  const Conv2dShape& s = named.shape;
  const QParams x = codes(activation_bits);
  integer::Program result;
  result.inputs = {0};
  result.outputs = {1};
  integer::QuantizedProduct product = random_product(s, bits, activation_bits, seed);
  if (named.linear) {
    result.values = {{.name = "input", .shape = {s.c}, .params = x},
                     {.name = "layer", .shape = {s.o}, .params = x}};
    result.steps.push_back(
        {.operation =
             integer::QuantizedLinear{.inputs = s.c, .outputs = s.o, .product = std::move(product)},
         .inputs = {0},
         .output = 1});
  } else {
    result.values = {{.name = "input", .shape = {s.h, s.w, s.c}, .params = x},
                     {.name = "layer", .shape = {s.oh(), s.ow(), s.o}, .params = x}};
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
  const auto add = [&](const NamedShape& named, int b, int activation_bits) {
    const std::string binary = activation_bits == 1 ? "a1" : "";
    result.push_back({.name = std::string(named.name) + "_w" + std::to_string(b) + binary,
                      .description = named.description,
                      .bits = b,
                      .activation_bits = activation_bits,
                      .program = program(named, b, activation_bits, result.size())});
  };
  for (const NamedShape& named : kShapes) {
    for (const int b : bits) {
      add(named, b, 8);
      if (b == 1) add(named, 1, 1);
    }
  }
  return result;
}

}  // namespace quantrain::proofs
