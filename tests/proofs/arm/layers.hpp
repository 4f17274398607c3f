#pragma once

#include "framework/kernels/conv_shape.hpp"

// The layers whose instructions scripts/prove arm counts.
namespace quantrain {

using kernels::Conv2dShape;

struct Layer {
  const char* name;
  const char* description;
  Conv2dShape shape;
};

inline Conv2dShape pointwise(int64_t h, int64_t w, int64_t c, int64_t o) {
  return {.h = h, .w = w, .c = c, .o = o};
}
inline Conv2dShape conv(int64_t h, int64_t w, int64_t c, int64_t o, int64_t stride = 1) {
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
inline Conv2dShape depthwise(int64_t h, int64_t w, int64_t c, int64_t stride = 1) {
  Conv2dShape s = conv(h, w, c, c, stride);
  s.groups = c;
  return s;
}
inline Conv2dShape linear(int64_t inputs, int64_t outputs) { return {.c = inputs, .o = outputs}; }

// A selection of layers of the networks of MLPerf Tiny and of the examples.
inline const Layer kLayers[] = {
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

}  // namespace quantrain
