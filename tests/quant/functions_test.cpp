#include <algorithm>
#include <functional>
#include <vector>

#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// A network with two layers from make(channels): make(4) after a batch norm, and make(5) after a
/// convolution.
template <class MakeLayer>
Sequential net_with(const MakeLayer& make) {
  return Sequential{Conv2d{1, 4, {.kernel = 3, .padding = 1}},
                    BatchNorm2d{4},
                    make(4),
                    MaxPool2d{2},
                    Conv2d{4, 5, {.kernel = 3}},
                    make(5),
                    Flatten{},
                    Linear{20, 4}};
}

/// Trains and converts the network, and compares the model with it. Returns the model.
IntegerModel checked_model(Sequential& net, int bits) {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 8, 8, 1}, 4);
  IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  return model;
}

int64_t lookups(const integer::Program& program) {
  return std::count_if(program.steps.begin(), program.steps.end(), [](const integer::Step& step) {
    return std::holds_alternative<integer::QuantizedLookup>(step.operation);
  });
}

}  // namespace

TEST_CASE("networks with each function convert to lookups that equal the simulation",
          "[quant][functions][serial]") {
  const std::vector<functions::Function> all{functions::sigmoid(),
                                             functions::tanh(),
                                             functions::hard_sigmoid(),
                                             functions::hard_swish(),
                                             functions::silu(),
                                             functions::gelu(),
                                             functions::gelu_tanh(),
                                             functions::mish(),
                                             functions::softplus(),
                                             functions::erf(),
                                             functions::selu(),
                                             functions::power(1.5f),
                                             functions::sqrt(),
                                             functions::log(),
                                             functions::hard_sigmoid(0.2f, 0.5f),
                                             functions::leaky_relu(0.1f),
                                             functions::elu(1.0f),
                                             functions::exp(),
                                             functions::square(),
                                             functions::abs(),
                                             functions::clamp(-0.5f, 0.75f)};
  for (const int bits : {8, 3}) {
    for (const functions::Function& function : all) {
      CAPTURE(function->type, bits);
      const bool grows = function->type == "exp";  // it overflows unless its input is clamped
      Sequential net = net_with([&](int64_t) {
        Sequential layer;
        if (grows) layer.append(Clamp{-4.0f, 4.0f});
        layer.append(Elementwise{function});
        return layer;
      });
      CHECK(lookups(checked_model(net, bits).program()) == (grows ? 4 : 2));
    }
  }
}

TEST_CASE("prelu converts to a table for each channel, and files keep all tables",
          "[quant][functions]") {
  const int bits = GENERATE(8, 3);
  Sequential net = net_with([](int64_t channels) {
    PReLU layer{channels};
    Tensor slope = layer.weight();
    for (int64_t c = 0; c < channels; ++c)
      slope.mutable_data()[c] = 0.4f * static_cast<float>(c) - 0.5f;
    return layer;
  });
  const IntegerModel model = checked_model(net, bits);
  const integer::Program& program = model.program();
  REQUIRE(lookups(program) == 2);
  const auto& lookup = std::get<integer::QuantizedLookup>(program.steps[1].operation);
  CHECK(lookup.channels() == 4);
  CHECK(lookup.kernel() == "lookup_channels_u8");
  // Equation (18), channel by channel: the slope is float32, everything else double.
  const QParams& x = *program.value(program.steps[1].inputs[0]).params;
  const QParams& y = *program.value(program.steps[1].output).params;
  const Tensor slope = net.find("2").parameters()[0];
  for (int64_t c = 0; c < 4; ++c) {
    const double s = slope.data()[c];
    const auto expected = integer::QuantizedLookup::function(
        1,
        {integer::code_values([s](double v) { return v > 0.0 ? v : s * v; }, x)},
        x,
        y,
        Activation::kNone,
        "prelu");
    for (int64_t q = 0; q < 256; ++q) CHECK(lookup.at(c, q) == expected.at(0, q));
  }
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == program);
  CHECK(loaded.hash() == model.hash());
}

TEST_CASE("a function that overflows is an error that names its layer", "[quant][functions]") {
  Sequential net{Linear{3, 3}, Exp{}, Linear{3, 2}};
  Tensor bias = net.find("0").parameters()[1];
  for (int64_t i = 0; i < 3; ++i) bias.mutable_data()[i] = 800.0f;
  const Tensor example = random_images({2, 3}, 1);
  prepare_qat(net, example, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(net(example), DataError, "[1] recent_min_max observer: the batch holds");
}

}  // namespace quantrain::quant
