#pragma once

#include <memory>
#include <span>
#include <vector>

#include "framework/core/random.hpp"
#include "layers/layers.hpp"
#include "quant/prepare/prepare.hpp"

// Small networks and data for the tests of conversion.
namespace quantrain::quant::test {

/// Random multiples of 1/255 in [0, 1]. Like the images of a data set, the tensor also stores their
/// bytes.
inline Tensor random_images(const Shape& shape, uint64_t seed) {
  Random random(seed);
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(shape.elements());
  codes->params = integer::input_params({0.0f, 1.0f}, "random_images");
  for (uint8_t& byte : codes->bytes) byte = static_cast<uint8_t>(random.below(256));
  return Tensor::decoded(shape, std::move(codes));
}

inline std::span<const float> span_of(const Tensor& x) {
  return {x.data(), static_cast<size_t>(x.elements())};
}

inline Tensor random_normal(const Shape& shape, uint64_t seed, float scale = 1.0f) {
  Random random(seed);
  Tensor x = Tensor::empty(shape);
  float* const data = x.mutable_data();
  for (int64_t i = 0; i < x.elements(); ++i) data[i] = scale * random.normal();
  return x;
}

/// Linear(12, 9) - ReLU - Linear(9, 4) on [N, 12].
inline Sequential mlp() { return Sequential{Linear{12, 9}, ReLU{}, Linear{9, 4}}; }

/// Two conv-BN-ReLU-pool blocks and a linear layer on [N, 8, 8, 1].
inline Sequential conv_net() {
  return Sequential{Conv2d{1, 6, {.kernel = 3, .padding = 1, .bias = false}},
                    BatchNorm2d{6},
                    ReLU{},
                    MaxPool2d{2},
                    Conv2d{6, 5, {.kernel = 3, .padding = 1}},
                    BatchNorm2d{5},
                    ReLU6{},
                    MaxPool2d{2},
                    Flatten{},
                    Linear{20, 4}};
}

/// Returns y concatenated with a depthwise convolution of y, where y = ReLU(norm2(conv2(x1)) + x)
/// and x1 = ReLU(norm1(conv1(x))).
class Branches : public Module {
 public:
  explicit Branches(int64_t c)
      : conv1_(add("conv1", Conv2d{c, c, {.kernel = 3, .padding = 1}})),
        norm1_(add("norm1", BatchNorm2d{c})),
        relu1_(add("relu1", ReLU{})),
        conv2_(add("conv2", Conv2d{c, c, {.kernel = 3, .padding = 1, .bias = false}})),
        norm2_(add("norm2", BatchNorm2d{c})),
        sum_(add("sum", Add{})),
        relu2_(add("relu2", ReLU{})),
        depthwise_(add("depthwise", Conv2d{c, c, {.kernel = 3, .padding = 1, .groups = c}})),
        concat_(add("concat", Concat{})) {}
  std::string_view type() const override { return "Branches"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor branch = (*norm2_)((*conv2_)((*relu1_)((*norm1_)((*conv1_)(x)))));
    const Tensor sum = (*relu2_)((*sum_)(branch, x));
    return (*concat_)(sum, (*depthwise_)(sum));
  }

 private:
  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<BatchNorm2d> norm1_;
  std::shared_ptr<ReLU> relu1_;
  std::shared_ptr<Conv2d> conv2_;
  std::shared_ptr<BatchNorm2d> norm2_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu2_;
  std::shared_ptr<Conv2d> depthwise_;
  std::shared_ptr<Concat> concat_;
};

/// Convolutions with strides and groups, a sum, a concatenation and average pools, on [N, 8, 8, 1].
inline Sequential branched_net() {
  return Sequential{Conv2d{1, 4, {.kernel = 3, .stride = 2, .padding = 1}},
                    ReLU{},
                    Branches{4},
                    AvgPool2d{2},
                    Conv2d{8, 6, {.kernel = 1, .groups = 2}},
                    GlobalAvgPool2d{},
                    Flatten{},
                    Linear{6, 4}};
}

/// A typical network for sensors, on [N, 40, 3]. It has three convolutions along one axis (plain,
/// dilated depthwise, dilated), each with batch norm. A max pool follows the first convolution. At
/// the end are an average pool and a mean over all steps.
inline Sequential signal_net() {
  return Sequential{Conv1d{3, 6, {.kernel = 5, .padding = 2, .bias = false}},
                    BatchNorm1d{6},
                    ReLU{},
                    MaxPool1d{2},
                    Conv1d{6, 6, {.kernel = 3, .padding = 2, .groups = 6, .dilation = 2}},
                    BatchNorm1d{6},
                    ReLU6{},
                    Conv1d{6, 9, {.kernel = 3, .stride = 2, .dilation = 3}},
                    BatchNorm1d{9},
                    ReLU{},
                    AvgPool1d{3, {.stride = 2, .padding = 1}},
                    GlobalAvgPool1d{},
                    Flatten{},
                    Linear{9, 4}};
}

/// Takes a few steps of plain gradient descent on random data, to move ranges and statistics.
void train_a_little(Module& net, const Shape& batch, int steps, int64_t classes = 4);
/// The same for several inputs: the first output is trained to classify, the others to be small.
void train_a_little(Module& net, const std::vector<Shape>& batches, int steps, int64_t classes = 4);

}  // namespace quantrain::quant::test
