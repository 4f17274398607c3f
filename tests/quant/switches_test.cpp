#include "quant/training/switches.hpp"

#include "framework/autograd/ops.hpp"
#include "layers/state.hpp"
#include "quant/training/prepare.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {

using quantrain::test::values;
using test::conv_net;
using test::mlp;
using test::random_images;
using test::train_a_little;

TEST_CASE("the declared input range stays, whatever the data and the switches",
          "[quant][switches]") {
  const Tensor example = random_images({2, 12}, 1);
  const Tensor dark = mul(random_images({6, 12}, 7), Tensor::full({1}, 0.3f));
  const auto check = [&](void (*prepare)(Module&, const Tensor&, const QConfig&)) {
    Sequential net = mlp();
    prepare(net, example, QConfig::int8());
    const InputQuantize& input = *Plugged(net).inputs.at(0);
    const QParams declared = input.params();
    CHECK(declared.scale[0] == 1.0f / 255.0f);
    net(example);
    enable_observers(net, false);
    enable_observers(net, true);
    net(dark);
    CHECK(input.params() == declared);
    CHECK(Plugged(net).activations[0]->observer_enabled());
  };
  check(prepare_qat);
  check(prepare_ptq);
}

TEST_CASE("a network that loads what was frozen, and freezes, trains on like the one saved",
          "[quant][switches]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  freeze(net);
  const quantrain::test::TemporaryFolder folder;
  save(net, folder / "net.safetensors");
  Sequential other = conv_net();
  prepare_qat(other, example, QConfig::int8());
  load(other, folder / "net.safetensors");
  CHECK(Plugged(other).activations[0]->observer_enabled());
  freeze(other);
  for (Sequential* each : {&net, &other}) train_a_little(*each, {6, 8, 8, 1}, 2);
  const std::vector<NamedTensor> a = state(net);
  const std::vector<NamedTensor> b = state(other);
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].name);
    CHECK(values(a[i].tensor) == values(b[i].tensor));
  }
}

}  // namespace quantrain::quant
