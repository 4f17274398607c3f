#include "quant/training/switches.hpp"

#include "framework/autograd/ops.hpp"
#include "quant/training/prepare.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {

using test::mlp;
using test::random_images;

TEST_CASE("the declared input range stays when observers are switched off and on",
          "[quant][switches]") {
  const Tensor example = random_images({2, 12}, 1);
  const Tensor dark = mul(random_images({6, 12}, 7), Tensor::full({1}, 0.3f));
  const auto check = [&](const auto& prepare) {
    Sequential net = mlp();
    prepare(net, example, QConfig::int8());
    const auto& input = dynamic_cast<const FakeQuantize&>(*net.slots().input);
    const QParams declared = input.params();
    CHECK(declared.scale[0] == 1.0f / 255.0f);
    net(example);
    enable_observers(net, false);
    enable_observers(net, true);
    net(dark);
    CHECK(input.params() == declared);
    CHECK(Plugged(net).activations[1]->observer_enabled());
  };
  check(prepare_qat);
  check(prepare_ptq);
}

}  // namespace quantrain::quant
