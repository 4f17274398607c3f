// What lowering keeps for exporters: neither the integers nor the hash depend on it.
#include <limits>

#include "framework/core/error.hpp"
#include "framework/integer/dead_channels.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/weight_quantizer.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using Texts = std::map<std::string, std::string>;

Sequential network() {
  Sequential net{Conv2d{3, 8, {.stride = 2, .padding = 1, .bias = false}},
                 BatchNorm2d{8},
                 ReLU6{},
                 LeakyReLU{0.125f},
                 AvgPool2d{2},
                 Mean{{1, 2}},
                 Linear{8, 3}};
  QConfig config = QConfig::int8();
  config.input_range = {-1.0f, 1.0f};
  prepare_qat(net, quantrain::test::random_tensor({2, 16, 16, 3}, 1), config);
  net(quantrain::test::random_tensor({2, 16, 16, 3}, 2));
  return net;
}

integer::Program program_of(Sequential& net) {
  return convert(net, quantrain::test::random_tensor({2, 16, 16, 3}, 1)).program();
}

}  // namespace

TEST_CASE("a program says what its steps were before they became integers", "[quant][origin]") {
  Sequential net = network();
  const integer::Program program = program_of(net);
  REQUIRE(program.steps.size() == 6);
  const auto about = [&](size_t i) { return program.steps[i].origin.about; };
  CHECK(about(0) == Texts{{"operation", "conv2d"},
                          {"activation", "relu6"},
                          {"stride", "[2,2]"},
                          {"padding", "[1,1]"},
                          {"dilation", "[1,1]"},
                          {"groups", "1"}});
  CHECK(about(1) == Texts{{"operation", "leaky_relu"}, {"alpha", "0.125"}});
  CHECK(about(2) == Texts{{"operation", "avg_pool2d"},
                          {"kernel", "[2,2]"},
                          {"stride", "[2,2]"},
                          {"padding", "[0,0]"}});
  CHECK(about(3).empty());                          // a view: the shapes of its values say all
  CHECK(about(4).at("operation") == "avg_pool2d");  // the mean of both axes
  CHECK(about(5) == Texts{{"operation", "linear"}});
  net.eval();
  for (const auto& [layer, step] : {std::pair{"0", size_t{0}}, std::pair{"6", size_t{5}}}) {
    const auto& slot = dynamic_cast<const WeightQuantizer&>(*net.find(layer).slots().weight);
    CHECK(program.steps[step].origin.weight_scale == slot.params().scale);
  }
  CHECK(program.steps[0].origin.weight_scale.size() == 8);
  CHECK(program.steps[5].origin.weight_scale.size() == 3);
  CHECK(program.steps[1].origin.weight_scale.empty());
}

TEST_CASE("origins are saved, and integers and hash do not depend on them", "[quant][origin]") {
  Sequential net = network();
  const integer::Program program = program_of(net);
  const quantrain::test::TemporaryFolder folder;
  IntegerModel(program).save(folder / "model");
  CHECK(IntegerModel::load(folder / "model").program() == program);
  integer::Program without = program;
  for (integer::Step& step : without.steps) step.origin = {};
  CHECK_FALSE(without == program);
  CHECK(integer::content_hash(without) == integer::content_hash(program));
  CHECK(integer::size_bytes(without) == integer::size_bytes(program));
  IntegerModel(without).save(folder / "without");
  CHECK(IntegerModel::load(folder / "without").program() == without);
}

TEST_CASE("scales of weights that do not fit their step are refused", "[quant][origin]") {
  Sequential net = network();
  const integer::Program program = program_of(net);
  const auto with = [&](size_t step, std::vector<float> scale) {
    integer::Program changed = program;
    changed.steps[step].origin.weight_scale = std::move(scale);
    validate(changed);
  };
  with(0, {0.5f});
  const std::string fits =
      "scales of weights must be positive and finite, one in all or one for each of ";
  QUANTRAIN_CHECK_ERROR(with(0, std::vector<float>(7, 0.5f)), GraphError, fits + "8 channels");
  QUANTRAIN_CHECK_ERROR(with(1, {0.5f}), GraphError, fits + "0 channels");
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity()})
    QUANTRAIN_CHECK_ERROR(with(0, {bad}), GraphError, fits + "8 channels");
}

TEST_CASE("dead channels leave with the scales of their weights", "[quant][origin]") {
  Sequential net = network();
  net.eval();
  integer::Program program = program_of(net);
  auto& conv = std::get<integer::QuantizedConv2d>(program.steps[0].operation);
  std::vector<int8_t> weight = conv.product.weight.values();
  const int64_t length = conv.shape.reduction();
  std::fill_n(weight.begin() + 2 * length, length, int8_t{0});  // channel 2 is constant
  conv.product.weight = {std::move(weight), conv.product.weight.bits()};
  std::vector<float> expected = program.steps[0].origin.weight_scale;
  expected.erase(expected.begin() + 2);
  const integer::Program smaller = integer::remove_dead_channels(program);
  CHECK(smaller.steps[0].origin.weight_scale == expected);
  CHECK(smaller.steps[0].origin.about == program.steps[0].origin.about);
}

}  // namespace quantrain::quant
