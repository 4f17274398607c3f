#include "quant/training/weight_quantizer.hpp"

#include <cmath>

#include "framework/autograd/ops.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {

using test::random_normal;

TEST_CASE("the gradient of a learned weight scale is LSQ's, with n all weights that share it",
          "[quant][weights]") {
  constexpr int64_t kOut = 16;
  constexpr int64_t kIn = 8;
  const bool per_channel = GENERATE(false, true);
  CAPTURE(per_channel);
  Tensor w = random_normal({kOut, kIn}, 1);
  WeightQuantizer quantizer(
      {.per_channel = per_channel, .estimator = Estimator::kLearned}, w, nullptr);
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

}  // namespace quantrain::quant
