#include "quant/training/weight_quantizer.hpp"

#include <cmath>

#include "framework/autograd/ops.hpp"
#include "quant/training/prepare.hpp"
#include "quant/training/switches.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {

using test::random_images;
using test::random_normal;

TEST_CASE("the gradient of a learned weight scale is LSQ's, with n all weights that share it",
          "[quant][weights]") {
  constexpr int64_t kOut = 16;
  constexpr int64_t kIn = 8;
  const bool per_channel = GENERATE(false, true);
  CAPTURE(per_channel);
  Tensor w = random_normal({kOut, kIn}, 1);
  WeightQuantizer quantizer(
      {.per_channel = per_channel, .estimator = Estimator::kLearned}, {w, {}}, nullptr);
  const Tensor scale = quantizer.parameters()[0];
  sum(quantizer.apply({w, {}}, Tensor::zeros({1, kIn})).weight).backward();
  const int64_t sharing = kOut * kIn / scale.elements();
  for (int64_t c = 0; c < scale.elements(); ++c) {
    double slopes = 0.0;
    for (int64_t i = c * sharing; i < (c + 1) * sharing; ++i) {
      const float ratio = w.data()[i] / scale.data()[c];
      const float code = std::nearbyint(ratio);
      const float slope = code < -127.0f ? -127.0f : code > 127.0f ? 127.0f : code - ratio;
      slopes += static_cast<double>(slope);
    }
    const double expected = slopes / std::sqrt(static_cast<double>(sharing) * 127.0);
    CHECK(scale.grad().data()[c] ==
          quantrain::test::Approx(expected).epsilon(1e-5));  // float32 out
  }
}

TEST_CASE("a learned weight scale starts from the folded weights", "[quant][weights]") {
  const float variance = GENERATE(1e-4f, 1e4f);
  const bool bias = GENERATE(false, true);
  CAPTURE(variance, bias);
  manual_seed(1);
  Sequential net{
      Conv2d{1, 4, {.kernel = 3, .bias = bias}}, BatchNorm2d{4}, Flatten{}, Linear{144, 4}};
  Tensor running = dynamic_cast<BatchNorm2d&>(net.find("1")).running_var();
  std::fill_n(running.mutable_data(), 4, variance);
  net.eval();
  const NoGrad no_grad;
  const Tensor images = random_images({20, 8, 8, 1}, 4);
  const Tensor exact = net(images);

  QConfig config = QConfig::int8();
  config.layers["0"].weight.estimator = Estimator::kLearned;
  prepare_ptq(net, images, config);
  const auto& conv = dynamic_cast<const Conv2d&>(net.find("0"));
  double mean = 0.0;  // of |w / sqrt(variance + epsilon)| in the first channel
  for (int i = 0; i < 9; ++i) mean += std::abs(static_cast<double>(conv.weight().data()[i])) / 9.0;
  mean /= std::sqrt(static_cast<double>(variance) + 1e-5);
  CHECK(conv.slots().weight->parameters()[0].data()[0] ==
        quantrain::test::Approx(2.0 * mean / std::sqrt(127.0)).epsilon(1e-5));

  net(images);
  freeze(net);
  const Tensor quantized = net(images);
  double error = 0.0;
  double size = 0.0;
  for (int64_t i = 0; i < exact.elements(); ++i) {
    const double value = static_cast<double>(exact.floats().data()[i]);
    error += std::pow(value - static_cast<double>(quantized.floats().data()[i]), 2);
    size += value * value;
  }
  CHECK(std::sqrt(error / size) < 0.1);  // 0.81 from unfolded weights at 1e-4
}

}  // namespace quantrain::quant
