#include "framework/autograd/ops/hard_swish.hpp"

#include <algorithm>

#include "framework/autograd/grad_check.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {

using test::check_parity;
using test::random_images;
using test::train_a_little;

TEST_CASE("hard_swish is 0, a parabola, then the identity", "[autograd][hard_swish]") {
  const std::vector<float> x{-4.0f, -3.0f, -1.5f, 0.0f, 1.5f, 3.0f, 5.0f};
  const Tensor y = hard_swish(Tensor::from({7}, x));
  CHECK(quantrain::test::values(y) ==
        std::vector<float>{0.0f, 0.0f, -0.375f, 0.0f, 1.125f, 3.0f, 5.0f});
  CHECK(hard_swish(Tensor::zeros({0, 3})).elements() == 0);
}

TEST_CASE("hard_swish gradient matches finite differences", "[autograd][hard_swish]") {
  // Away from the kinks at -3 and 3.
  const std::vector<float> values{-3.5f, -2.0f, -0.4f, 0.7f, 2.5f, 4.0f};
  Tensor x = Tensor::from({2, 3}, values).set_requires_grad(true);
  const GradCheckResult result = grad_check([&] { return hard_swish(x); }, {x});
  INFO(result.worst);
  CHECK(result.ok);
}

TEST_CASE("networks with HardSwish convert to lookups that equal the simulation",
          "[quant][hard_swish]") {
  const int bits = GENERATE(8, 4);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{Conv2d{1, 4, {.kernel = 3, .padding = 1}},
                 BatchNorm2d{4},
                 HardSwish{},
                 MaxPool2d{2},
                 Conv2d{4, 5, {.kernel = 3}},
                 HardSwish{},
                 Flatten{},
                 Linear{20, 4}};
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 8, 8, 1}, 4);
  const IntegerModel model = convert(net, example);
  const auto& steps = model.program().steps;
  CHECK(std::count_if(steps.begin(), steps.end(), [](const integer::Step& step) {
          return std::holds_alternative<integer::QuantizedLookup>(step.operation);
        }) == 2);
  check_parity(net, model, random_images({40, 8, 8, 1}, 9));
}

}  // namespace quantrain::quant
