#include <sstream>

#include "framework/autograd/ops.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// Trains and converts networks for signals, and networks with a dilation. The trained and the
// converted network must compute the same integers.
namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::signal_net;
using test::train_a_little;

/// A network on [N, 10, 12, 3].
Sequential dilated_net() {
  return Sequential{
      Conv2d{3, 6, {.kernel = 3, .padding = 2, .bias = false, .dilation = 2}},
      BatchNorm2d{6},
      ReLU{},
      Conv2d{6, 6, {.kernel = 3, .groups = 6, .dilation = {3, 2}}},
      BatchNorm2d{6},
      ReLU6{},
      Conv2d{6, 8, {.kernel = {2, 3}, .stride = {1, 2}, .padding = 1, .dilation = {2, 3}}},
      GlobalAvgPool2d{},
      Flatten{},
      Linear{8, 4}};
}

}  // namespace

TEST_CASE("a network for signals converts to integers that equal the simulation",
          "[quant][signals]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 40, 3}, 1);
  Sequential net = signal_net();
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 40, 3}, 4);
  check_on_every_isa(net, convert(net, example), example, random_images({40, 40, 3}, 9));
}

TEST_CASE("an average pool that pads by an operation of its own converts", "[quant][signals]") {
  const PoolingOptions beyond{
      .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = true};
  const Tensor example = random_images({2, 8, 8, 3}, 1);
  Sequential net{
      Conv2d{3, 12, {.kernel = 3}}, ReLU{}, AvgPool2d{3, beyond}, Flatten{}, Linear{192, 4}};
  prepare_qat(net, example, QConfig::int4());
  train_a_little(net, {6, 8, 8, 3}, 4);
  check_on_every_isa(net, convert(net, example), example, random_images({40, 8, 8, 3}, 9));
}

TEST_CASE("the plan of a network for signals names its layers and what folds into them",
          "[quant][signals]") {
  const Tensor example = random_images({2, 40, 3}, 1);
  Sequential net = signal_net();
  prepare_qat(net, example, QConfig::int8());
  const Plan all = plan(net, example);
  CHECK(all.convertible());
  struct Row {
    std::string name, operation, kernel, folded;
  };
  const Row expected[] = {{"0", "conv1d", "conv2d_u8s8_u8", "1, 2"},
                          {"3", "max_pool1d", "max_pool2d_u8", ""},
                          {"4", "conv1d", "conv2d_u8s8_u8", "5, 6"},
                          {"7", "conv1d", "conv2d_u8s8_u8", "8, 9"},
                          {"10", "avg_pool1d", "avg_pool2d_u8", ""},
                          {"11", "avg_pool1d", "avg_pool2d_u8", ""},
                          {"12", "flatten", "none", ""},
                          {"13", "linear", "gemm_u8s8_s32", ""}};
  REQUIRE(all.rows.size() == std::size(expected));
  for (size_t i = 0; i < all.rows.size(); ++i) {
    INFO("row " << i);
    CHECK(all.rows[i].name == expected[i].name);
    CHECK(all.rows[i].operation == expected[i].operation);
    CHECK(all.rows[i].kernel == expected[i].kernel);
    CHECK(all.rows[i].folded == expected[i].folded);
  }
  train_a_little(net, {6, 40, 3}, 1);
  // The flatten is the only view; values have the shapes of signals.
  const IntegerModel model = convert(net, example);
  CHECK(model.program().steps.size() == std::size(expected));
  CHECK(test::step_output(model, 0).shape == Shape{40, 6});
  CHECK(test::step_output(model, 2).shape == Shape{20, 6});
  std::ostringstream text;
  text << all;
  CHECK(text.str().find("conv1d") != std::string::npos);
}

TEST_CASE("saving and loading keep a model for signals or with dilation", "[quant][signals]") {
  const quantrain::test::TemporaryFolder folder;
  const Shape sample = GENERATE(Shape{2, 40, 3}, Shape{2, 10, 12, 3});
  const Tensor example = random_images(sample, 1);
  Sequential net = sample.rank() == 3 ? signal_net() : dilated_net();
  prepare_qat(net, example, QConfig::int4());
  train_a_little(net, sample, 2);
  const IntegerModel model = convert(net, example);
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == model.program());
  CHECK(loaded.hash() == model.hash());
  check_parity(net, loaded, random_images(sample, 3));
}

TEST_CASE("a prepared network for signals is saved with its weights' shapes", "[quant][signals]") {
  const quantrain::test::TemporaryFolder folder;
  const Tensor example = random_images({2, 40, 3}, 1);
  Sequential net = signal_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 40, 3}, 2);
  CHECK(net.find("0").parameters()[0].shape() == Shape{6, 5, 3});
  save(net, folder / "state");
  Sequential other = signal_net();
  prepare_qat(other, example, QConfig::int8());
  load(other, folder / "state");
  CHECK(convert(other, example).program() == convert(net, example).program());
}

TEST_CASE("a signal's batch norm folds, and frozen training computes the deployed network",
          "[quant][signals]") {
  const Tensor example = random_images({2, 40, 3}, 1);
  const Tensor images = random_images({9, 40, 3}, 9);
  Sequential net = signal_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 40, 3}, 3);
  freeze(net);
  net.train();
  const std::vector<float> training = values(net(images));
  net.eval();
  CHECK(values(net(images)) == training);
  check_parity(net, convert(net, example), images);
}

TEST_CASE("a signal's batch norm without a layer to fold into becomes tables",
          "[quant][signals][batch_norm]") {
  const Tensor example = random_images({2, 40, 3}, 1);
  Sequential net{BatchNorm1d{3},
                 Slice{1, {.begin = 1, .step = 2}},
                 Conv1d{3, 5, {.kernel = 4, .dilation = 2}},
                 ReLU{},
                 MaxPool1d{2},
                 BatchNorm1d{5},
                 GlobalMaxPool1d{},
                 Flatten{},
                 Linear{5, 4}};
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 40, 3}, 3);
  CHECK(plan(net, example).convertible());
  check_on_every_isa(net, convert(net, example), example, random_images({40, 40, 3}, 9));
}

TEST_CASE("a network with dilation converts to integers that equal the simulation",
          "[quant][dilation]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 10, 12, 3}, 1);
  Sequential net = dilated_net();
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 10, 12, 3}, 4);
  check_on_every_isa(net, convert(net, example), example, random_images({40, 10, 12, 3}, 9));
}

TEST_CASE("a reshape between images and signals is a view, and the layers after it fuse",
          "[quant][reshape]") {
  const Tensor example = random_images({2, 6, 4, 2}, 1);
  Sequential net{Reshape{{-1, 2}},
                 Conv1d{2, 5, {.kernel = 3, .padding = 1}},
                 BatchNorm1d{5},
                 Reshape{{6, 4, 5}},
                 ReLU{},
                 Conv2d{5, 3, {.kernel = 3}},
                 Flatten{},
                 Linear{24, 4}};
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 6, 4, 2}, 3);
  const Plan all = plan(net, example);
  REQUIRE(all.rows.size() == 5);
  CHECK(all.rows[0].operation == "reshape");
  CHECK(all.rows[1].folded == "2, 3, 4");
  const IntegerModel model = convert(net, example);
  check_parity(net, model, random_images({40, 6, 4, 2}, 9));
  CHECK(test::step_output(model, 1).shape == Shape{6, 4, 5});
}

}  // namespace quantrain::quant
