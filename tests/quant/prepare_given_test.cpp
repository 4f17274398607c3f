#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

Sequential given_network() { return Sequential{Linear{4, 3}, ReLU{}, Linear{3, 2}, Softmax{}}; }

QConfig given_config() {
  QConfig config = QConfig::int8();
  config.input_range = {-1.0f, 1.0f};
  return config;
}

TEST_CASE("a network can be prepared with parameters that are known", "[quant][prepare]") {
  Sequential net = given_network();
  net.eval();
  const QParams weights{{4, true, true}, 0, {0.5f, 0.25f, 0.125f}, {0, 0, 0}};
  const QParams hidden{{5, true, false}, -1, {0.25f}, {-16}};
  const QParams shares{{}, -1, {1.0f / 256.0f}, {0}};
  const Tensor example = quantrain::test::random_tensor({2, 4});
  prepare_given(net,
                {example},
                given_config(),
                {.outputs = {{"1", hidden}, {"3", shares}}, .weights = {{"0", weights}}});
  CHECK(weight_quantizer(net, "0").params() == weights);
  CHECK(output_quantizer(net, "1").params() == hidden);
  CHECK(output_quantizer(net, "3").params() == shares);
  // What is not given is chosen as ever: the weights of the last layer, the logits.
  CHECK(!weight_quantizer(net, "2").is_given());
  calibrate(net, example);
  CHECK(output_quantizer(net, "1").params() == hidden);
  const IntegerModel model = convert(net, example);
  std::vector<float> y(4);
  model.run(quantrain::test::values(example), y);
  CHECK(y == quantrain::test::values(net(example)));
}

TEST_CASE("an output layer without given parameters keeps its sums", "[quant][prepare]") {
  Sequential net{Linear{4, 3}, ReLU{}, Linear{3, 2}};
  net.eval();
  QConfig config = given_config();
  config.output_bits = 8;
  const QParams hidden{{}, -1, {0.25f}, {0}};
  const Tensor example = quantrain::test::random_tensor({2, 4});
  prepare_given(net, {example}, config, {.outputs = {{"1", hidden}}});
  const IntegerModel model = convert(net, example);
  CHECK(!model.program().value(model.program().outputs[0]).is_codes());
}

TEST_CASE("parameters of layers without such a slot are refused before anything changes",
          "[quant][prepare]") {
  Sequential net = given_network();
  const Tensor example = quantrain::test::random_tensor({2, 4});
  const QParams codes{{}, -1, {0.25f}, {0}};
  const auto prepare = [&](const GivenParams& given) {
    prepare_given(net, {example}, given_config(), given);
  };
  CHECK_THROWS_AS(prepare({.outputs = {{"0", codes}}}), GraphError);
  CHECK_THROWS_WITH(prepare({.outputs = {{"0", codes}}}),
                    quantrain::test::ContainsSubstring("the layer \"0\" ends no operation"));
  CHECK_THROWS_WITH(
      prepare({.weights = {{"1", codes}}}),
      quantrain::test::ContainsSubstring("the layer \"1\" has no weights to quantize"));
  QParams wrong = codes;
  wrong.scale = {0.0f};
  CHECK_THROWS_AS(prepare({.outputs = {{"1", wrong}}}), QuantError);
  wrong = {{8, true, true}, 0, {0.5f}, {0}};  // one scale for three channels
  CHECK_THROWS_AS(prepare({.weights = {{"0", wrong}}}), QuantError);
  for (const NamedModule& entry : net.named_modules()) CHECK(!entry.module->has_filled_slot());
}

}  // namespace
}  // namespace quantrain::quant
