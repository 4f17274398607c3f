#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/random.hpp"
#include "layers/layers.hpp"

// Networks that together have every operation with a form in ONNX.
namespace quantrain::test {

struct ExportedNetwork {
  std::string name;
  std::unique_ptr<Module> net;
  Shape shape;  ///< of a batch
};

inline Tensor noise_for_export(const Shape& shape) {
  Random random(11);
  Tensor x = Tensor::empty(shape);
  for (int64_t i = 0; i < x.elements(); ++i) x.mutable_data()[i] = random.uniform(-2.0f, 2.0f);
  return x;
}

/// Arithmetic of images, outside of layers.
class ImageArithmetic : public Module {
 public:
  ImageArithmetic()
      : scale_(add_parameter("scale", noise_for_export({3}))),
        one_(add_parameter("one", Tensor::full({1}, 1.5f))),
        plane_(add_parameter("plane", noise_for_export({1, 5, 4, 3}))),
        conv_(Module::add("conv", Conv2d{3, 3, {.kernel = 3, .padding = 1}})) {}
  std::string_view type() const override { return "ImageArithmetic"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = (*conv_)(x);
    const Tensor channels = mean(mean(y, 1, true), 2, true);
    const Tensor scaled = y * scale_ - one_ + y * channels;
    const Tensor joined = concat({scaled, y + plane_, x}, 3);
    const Tensor moved = take(slice(joined, 3, {.begin = 8, .step = -2}), 2, {3, 0, 0, 1});
    const Tensor padded = pad(moved, {0, 1, 0, 0}, {0, 0, 2, 0}, 0.5f);
    return sum(sum(transpose(padded, {0, 3, 1, 2}), 3, false), 2, false) / one_;
  }

 private:
  Tensor scale_, one_, plane_;
  std::shared_ptr<Conv2d> conv_;
};

inline std::vector<ExportedNetwork> exported_networks() {
  std::vector<ExportedNetwork> all;
  const auto sequential = [&](const std::string& name, const Shape& shape, auto... layers) {
    auto net = std::make_unique<Sequential>();
    (net->append(std::move(layers)), ...);
    all.push_back({name, std::move(net), shape});
  };
  sequential("images",
             {2, 9, 8, 3},
             Conv2d{3, 6, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .groups = 3}},
             BatchNorm2d{6},
             ReLU6{},
             MaxPool2d{2, {.padding = 1, .ceil_mode = true}},
             PReLU{6},
             Upsample{2},
             AvgPool2d{3, {.stride = 2, .padding = 1, .count_include_pad = true}},
             Conv2d{6, 4, {.kernel = 2, .bias = false, .dilation = 2}},
             ZeroPad2d{{1, 0, 2, 1}},
             AvgPool2d{2, {.stride = 2, .padding = 1, .ceil_mode = true}},
             Flatten{},
             Linear{24, 5},
             Softmax{});
  sequential("signals",
             {2, 12, 3},
             Conv1d{3, 5, {.kernel = 3, .padding = 2, .dilation = 2}},
             BatchNorm1d{5},
             SiLU{},
             MaxPool1d{3},
             Slice{1, {.begin = 1}},
             ZeroPad1d{{1, 2}},
             Linear{5, 4},
             AvgPool1d{2});
  sequential("means", {2, 6, 4, 3}, Mean{{1, 2}}, BatchNorm1d{3}, Linear{3, 2, {.bias = false}});
  sequential("maxima", {2, 6, 4, 3}, Max{2}, GlobalAvgPool1d{}, Flatten{});
  sequential("global", {2, 6, 4, 3}, Conv2d{3, 8, {.kernel = 1}}, GlobalMaxPool2d{}, Reshape{{8}});
  sequential("functions",
             {3, 7},
             Sigmoid{},
             Tanh{},
             HardSigmoid{},
             HardSwish{},
             SiLU{},
             GELU{},
             GELUTanh{},
             Mish{},
             Softplus{},
             Erf{},
             LeakyReLU{0.2f},
             ELU{0.7f},
             SELU{},
             Exp{},
             Square{},
             Power{1.5f},
             Sqrt{},
             Logarithm{},
             Abs{},
             Clamp{0.1f, 2.0f});
  all.push_back({"arithmetic", std::make_unique<ImageArithmetic>(), {2, 5, 4, 3}});
  return all;
}

}  // namespace quantrain::test
