// The example of docs/guide.md: small images of four shapes, and a residual network for them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "framework/core/random.hpp"
#include "framework/data/dataset.hpp"
#include "layers/layers.hpp"

using namespace quantrain;

/// Images [16, 16, 1] of a frame, a cross, a saltire or a block, with random position, brightness
/// and noise.
inline Dataset shapes(int64_t count, uint64_t seed) {
  constexpr int64_t kSide = 16, kShape = 8;
  Random random(seed);
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = random.below(4);
    const int64_t top = random.below(kSide - kShape), left = random.below(kSide - kShape);
    const int64_t light = 45 + random.below(100);
    for (int64_t row = 0; row < kSide; ++row) {
      for (int64_t column = 0; column < kSide; ++column) {
        const int64_t y = row - top, x = column - left;
        const bool inside = y >= 0 && y < kShape && x >= 0 && x < kShape;
        const bool edge = y == 0 || x == 0 || y == kShape - 1 || x == kShape - 1;
        const bool lit[] = {edge, y == 4 || x == 4, y == x || y + x == kShape - 1, true};
        pixels.push_back(
            static_cast<uint8_t>(random.below(110) + (inside && lit[label] ? light : 0)));
      }
    }
    labels.push_back(static_cast<int32_t>(label));
  }
  return Dataset({count, kSide, kSide, 1}, std::move(pixels), std::move(labels), 4);
}

/// y = relu(x + norm(conv(relu(norm(conv(x)))))), with unchanged shape.
class Residual : public Module {
 public:
  explicit Residual(int64_t channels)
      : branch_(add("branch",
                    Sequential{Conv2d{channels, channels, {.padding = 1, .bias = false}},
                               BatchNorm2d{channels},
                               ReLU{},
                               Conv2d{channels, channels, {.padding = 1, .bias = false}},
                               BatchNorm2d{channels}})),
        sum_(add("sum", Add{})),
        relu_(add("relu", ReLU{})) {}

  std::string_view type() const override { return "Residual"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*relu_)((*sum_)((*branch_)(x), x)); }

 private:
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
};

class Squeeze : public Module {
 public:
  explicit Squeeze(int64_t channels)
      : factors_(add("factors",
                     Sequential{GlobalAvgPool2d{},  // [N, 1, 1, channels]
                                Conv2d{channels, channels / 4, {.kernel = 1}},
                                ReLU{},
                                Conv2d{channels / 4, channels, {.kernel = 1}},
                                Sigmoid{}})),
        product_(add("product", Mul{})) {}

  std::string_view type() const override { return "Squeeze"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*product_)(x, (*factors_)(x)); }

 private:
  std::shared_ptr<Sequential> factors_;
  std::shared_ptr<Mul> product_;
};

inline Sequential make_network() {
  return Sequential{Conv2d{1, 8, {.stride = 2, .padding = 1, .bias = false}},  // [N, 8, 8, 8]
                    BatchNorm2d{8},
                    ReLU{},
                    Residual{8},
                    MaxPool2d{2},                                  // [N, 4, 4, 8]
                    Conv2d{8, 16, {.padding = 1, .bias = false}},  // [N, 4, 4, 16]
                    BatchNorm2d{16},
                    ReLU{},
                    GlobalAvgPool2d{},  // [N, 1, 1, 16]
                    Flatten{},
                    Linear{16, 4}};
}
