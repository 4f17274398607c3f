#pragma once

#include <cstdint>
#include <memory>

#include "examples/networks.hpp"
#include "framework/autograd/ops/reshape.hpp"
#include "layers/layers.hpp"

// Networks for small devices: those of MLPerf Tiny, with the published layers, and one for the
// sensors of a machine.
// Source: Banbury et al. 2021, "MLPerf Tiny Benchmark"; github.com/mlcommons/tiny
namespace quantrain::examples {

/// A multilayer perceptron for rows of a few numbers, features-32-16-classes.
inline Sequential sensor_mlp(int64_t features, int64_t classes) {
  return Sequential{Linear{features, 32}, ReLU{}, Linear{32, 16}, ReLU{}, Linear{16, classes}};
}

/// Linear, batch norm and ReLU.
inline Sequential dense_block(int64_t in, int64_t out) {
  return Sequential{Linear{in, out, {.bias = false}}, BatchNorm1d{out}, ReLU{}};
}

/// Anomaly detection: reproduces its input [N, 640] through a bottleneck of eight numbers.
inline Sequential autoencoder() {
  return Sequential{dense_block(640, 128),
                    dense_block(128, 128),
                    dense_block(128, 128),
                    dense_block(128, 128),
                    dense_block(128, 8),
                    dense_block(8, 128),
                    dense_block(128, 128),
                    dense_block(128, 128),
                    dense_block(128, 128),
                    Linear{128, 640}};
}

/// Reshapes a spectrogram [N, T, F] to an image [N, T, F, 1]. The network's input is [N, T, F],
/// because features with their own offsets and scales must be the last axis.
class ToImage : public Module {
 public:
  std::string_view type() const override { return "ToImage"; }

 protected:
  Tensor forward(const Tensor& x) override { return reshape(x, {-1, x.dim(1), x.dim(2), 1}); }
};

/// A depthwise and a pointwise convolution, each with batch norm and ReLU.
inline Sequential separable_block(int64_t in, int64_t out, int64_t stride = 1) {
  return Sequential{
      Conv2d{in, in, {.stride = stride, .padding = 1, .groups = in, .bias = false}},
      BatchNorm2d{in},
      ReLU{},
      Conv2d{in, out, {.kernel = 1, .bias = false}},
      BatchNorm2d{out},
      ReLU{},
  };
}

/// Keyword spotting: DS-CNN for MFCCs [N, 49, 10] of twelve classes.
inline Sequential ds_cnn() {
  return Sequential{
      ToImage{},  // [N, 49, 10] -> [N, 49, 10, 1]
      Conv2d{1, 64, {.kernel = {10, 4}, .stride = 2, .padding = {5, 1}, .bias = false}},
      BatchNorm2d{64},
      ReLU{},  // -> [N, 25, 5, 64]
      Dropout{0.2f},
      separable_block(64, 64),
      separable_block(64, 64),
      separable_block(64, 64),
      separable_block(64, 64),
      Dropout{0.4f},
      GlobalAvgPool2d{},  // -> [N, 1, 1, 64]
      Flatten{},
      Linear{64, 12},
  };
}

/// y = relu(shortcut(x) + norm(conv(relu(norm(conv(x)))))). The shortcut is x or, if stride or
/// channels change the shape, a 1 x 1 convolution of x.
class ResidualStack : public Module {
 public:
  ResidualStack(int64_t in, int64_t out, int64_t stride)
      : branch_(add("branch",
                    Sequential{
                        Conv2d{in, out, {.stride = stride, .padding = 1, .bias = false}},
                        BatchNorm2d{out},
                        ReLU{},
                        Conv2d{out, out, {.padding = 1, .bias = false}},
                        BatchNorm2d{out},
                    })),
        sum_(add("sum", Add{})),
        relu_(add("relu", ReLU{})) {
    if (in != out || stride != 1)
      shortcut_ = add("shortcut", Conv2d{in, out, {.kernel = 1, .stride = stride}});
  }

  std::string_view type() const override { return "ResidualStack"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return (*relu_)((*sum_)((*branch_)(x), shortcut_ ? (*shortcut_)(x) : x));
  }

 private:
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Conv2d> shortcut_;
};

/// Image classification: ResNet-8 for images [N, 32, 32, channels] of ten classes.
inline Sequential resnet8(int64_t channels) {
  return Sequential{
      Conv2d{channels, 16, {.padding = 1, .bias = false}},
      BatchNorm2d{16},
      ReLU{},                    // -> [N, 32, 32, 16]
      ResidualStack{16, 16, 1},  // -> [N, 32, 32, 16]
      ResidualStack{16, 32, 2},  // -> [N, 16, 16, 32]
      ResidualStack{32, 64, 2},  // -> [N, 8, 8, 64]
      GlobalAvgPool2d{},         // -> [N, 1, 1, 64]
      Flatten{},
      Linear{64, 10},
  };
}

/// Visual wake words: MobileNetV1 of width 0.25 for images [N, 96, 96, 3] of two classes, with and
/// without a person.
inline Sequential mobilenet() {
  return Sequential{
      Conv2d{3, 8, {.stride = 2, .padding = 1, .bias = false}},
      BatchNorm2d{8},
      ReLU{},  // -> [N, 48, 48, 8]
      separable_block(8, 16),
      separable_block(16, 32, 2),  // -> [N, 24, 24, 32]
      separable_block(32, 32),
      separable_block(32, 64, 2),  // -> [N, 12, 12, 64]
      separable_block(64, 64),
      separable_block(64, 128, 2),  // -> [N, 6, 6, 128]
      separable_block(128, 128),
      separable_block(128, 128),
      separable_block(128, 128),
      separable_block(128, 128),
      separable_block(128, 128),
      separable_block(128, 256, 2),  // -> [N, 3, 3, 256]
      separable_block(256, 256),
      GlobalAvgPool2d{},  // -> [N, 1, 1, 256]
      Flatten{},
      Linear{256, 2},
  };
}

/// The networks of MLPerf Tiny, by the names of their tasks; for benchmarks.
inline const std::vector<Network>& tiny_networks() {
  static const std::vector<Network> all{
      {.name = "anomaly_detection", .make = autoencoder, .input = {640}, .outputs = 640},
      {.name = "keyword_spotting", .make = ds_cnn, .input = {49, 10}, .outputs = 12},
      {.name = "image_classification",
       .make = [] { return resnet8(3); },
       .input = {32, 32, 3},
       .outputs = 10},
      {.name = "visual_wake_words", .make = mobilenet, .input = {96, 96, 3}, .outputs = 2},
  };
  return all;
}

}  // namespace quantrain::examples
