// Computes the numbers of docs/quantization.md: one linear layer, from floats to integers and back,
// one step for each equation.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "quant/arithmetic.hpp"
#include "quant/observers/min_max.hpp"

namespace {

using namespace quantrain::quant;

constexpr QType kU8{8, false, false};  // activations
constexpr QType kS8{8, true, true};    // weights: narrow range, +-127

constexpr std::array<float, 3> kInput{0.2f, 0.9f, 0.5f};
constexpr std::array<std::array<float, 3>, 2> kWeight{{{0.5f, -0.3f, 0.8f}, {-1.0f, 0.25f, 0.1f}}};
constexpr std::array<float, 2> kBias{0.1f, -0.05f};

float largest_magnitude(const std::array<float, 3>& row) {
  float largest = 0.0f;
  for (const float w : row) largest = std::max(largest, std::abs(w));
  return largest;
}

}  // namespace

int main() {
  // The input's range is declared, and the output's range is observed.
  const ScaleZero x = choose_params({0.0f, 1.0f}, kU8, QScheme::kAffine, "input");
  MinMaxObserver observer({}, {.name = "output"});
  observer.observe(quantrain::Tensor::from({4}, std::array<float, 4>{0.33f, -0.5f, 1.0f, 0.025f}));
  const ScaleZero y = choose_params(observer.range(), kU8, QScheme::kAffine, "output");
  std::printf("(2)  x: scale %.7f, zero point %d\n", x.scale, x.zero_point);
  std::printf("(2)  y: scale %.7f, zero point %d\n", y.scale, y.zero_point);

  std::array<int32_t, 3> x_code{};
  for (size_t k = 0; k < 3; ++k) x_code[k] = quantize(kInput[k], x.scale, x.zero_point, 0, 255);
  std::printf("(3)  x: codes %d %d %d\n", x_code[0], x_code[1], x_code[2]);
  std::printf("(4)  gradient at 1.0: %d, at 1.01: %d\n",
              gradient_passes(1.0f, x.scale, x.zero_point, 0, 255),
              gradient_passes(1.01f, x.scale, x.zero_point, 0, 255));

  std::array<int32_t, 2> y_code{};
  for (size_t o = 0; o < 2; ++o) {
    const float scale_w =
        weight_scale(largest_magnitude(kWeight[o]), kBias[o], x.scale, kS8, "linear");
    const int32_t bias = quantize_bias(kBias[o], x.scale, scale_w);
    std::array<int32_t, 3> w{};
    int32_t acc = bias;
    float real = kBias[o];
    for (size_t k = 0; k < 3; ++k) {
      w[k] = quantize(kWeight[o][k], scale_w, 0, kS8.qmin(), kS8.qmax());
      acc += w[k] * (x_code[k] - x.zero_point);
      real += kWeight[o][k] * kInput[k];
    }
    const double scale_acc = sum_scale(x.scale, scale_w);
    const Multiplier m = sum_multiplier(scale_acc, y.scale);
    y_code[o] = requantize(acc, m, y.zero_point, 0, 255);
    std::printf("output %zu\n", o);
    std::printf("(5)  w: scale %.7f, codes %d %d %d\n", scale_w, w[0], w[1], w[2]);
    std::printf("(6)  bias: code %d\n", bias);
    std::printf("(7)  accumulator %d = %.5f, in floats %.5f\n", acc, acc * scale_acc, real);
    std::printf("(8)  M0 %d, shift %d: code %d = %.5f\n",
                m.m0,
                m.shift,
                y_code[o],
                dequantize(y_code[o], y.scale, y.zero_point));
  }

  const CodeClamp relu = code_clamp(Activation::kRelu, kU8, y.scale, y.zero_point);
  const CodeClamp relu6 = code_clamp(Activation::kRelu6, kU8, 0.05f, 20);
  std::printf("ReLU, pooling and addition\n");
  std::printf("(9)  ReLU of y: codes %d to %d\n", relu.lo, relu.hi);
  std::printf("(9)  ReLU6 at scale 0.05, zero point 20: codes %d to %d\n", relu6.lo, relu6.hi);

  const int32_t sum = x_code[0] + x_code[1] + x_code[2] - 3 * x.zero_point;
  const int32_t mean = requantize(sum, mean_multiplier(x.scale, 3, y.scale), y.zero_point, 0, 255);
  std::printf("(10) mean of x: code %d = %.5f\n", mean, dequantize(mean, y.scale, y.zero_point));

  const AddMultipliers m = add_multipliers({x.scale, y.scale}, y.scale);
  const int32_t added =
      requantize_add({x_code[0] - x.zero_point, y_code[0] - y.zero_point}, m, y.zero_point, 0, 255);
  std::printf("(11) x[0] + y[0]: %d and %d, shift %d: code %d = %.5f\n",
              m.m[0],
              m.m[1],
              m.shift,
              added,
              dequantize(added, y.scale, y.zero_point));
}
