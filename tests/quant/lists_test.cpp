#include <algorithm>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// Networks with lists of inputs and outputs.
namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_parity;
using test::random_images;
using test::step_output;

/// Joins an image and a vector. The first output holds logits, the second holds features after a
/// ReLU. If `shared`, the logits are computed from these features.
class ListTowers : public Module {
 public:
  explicit ListTowers(bool shared)
      : shared_(shared),
        conv_(add("conv", Conv2d{2, 3, {.kernel = 3}})),
        conv_relu_(add("conv_relu", ReLU{})),
        flatten_(add("flatten", Flatten{})),
        fc_(add("fc", Linear{5, 7})),
        fc_relu_(add("fc_relu", ReLU{})),
        concat_(add("concat", Concat{})),
        features_(add("features", Linear{34, 8})),
        relu_(add("relu", ReLU{})),
        logits_(add("logits", Linear{shared ? 8 : 34, 4})) {}
  std::string_view type() const override { return "TwoTowers"; }

 protected:
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    if (x.size() != 2) throw ShapeError(where(), "takes an image and a vector, got ", x.size());
    const Tensor image = (*flatten_)((*conv_relu_)((*conv_)(x[0])));
    const Tensor joined = (*concat_)(image, (*fc_relu_)((*fc_)(x[1])));
    const Tensor features = (*relu_)((*features_)(joined));
    return {(*logits_)(shared_ ? features : joined), features};
  }

 private:
  bool shared_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ReLU> conv_relu_;
  std::shared_ptr<Flatten> flatten_;
  std::shared_ptr<Linear> fc_;
  std::shared_ptr<ReLU> fc_relu_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<Linear> features_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Linear> logits_;
};

/// A linear layer on the first input. The list of outputs depends on `kind`.
class Outputs : public Module {
 public:
  enum class Kind { kNone, kTwice, kInput, kUnused, kConstant };
  explicit Outputs(Kind kind) : kind_(kind), fc_(add("fc", Linear{6, 3})) {}
  std::string_view type() const override { return "Outputs"; }

 protected:
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    const Tensor y = (*fc_)(x[0]);
    switch (kind_) {
      case Kind::kNone: return {};
      case Kind::kTwice: return {y, y};
      case Kind::kInput: return {y, x[0]};
      case Kind::kUnused: return {y};
      case Kind::kConstant: return {y, Tensor::full({x[0].dim(0), 1}, 1.0f)};
    }
    return {};
  }

 private:
  Kind kind_;
  std::shared_ptr<Linear> fc_;
};

std::vector<Tensor> examples(int64_t n, uint64_t seed) {
  return {random_images({n, 5, 5, 2}, seed), random_images({n, 5}, seed + 50)};
}

void train_lists(Module& net, int steps) {
  test::train_a_little(net, std::vector<Shape>{{6, 5, 5, 2}, {6, 5}}, steps);
}

std::vector<uint8_t> bytes_of(const IntegerModel& model, const Tensor& x, size_t input) {
  std::vector<uint8_t> codes(static_cast<size_t>(x.elements()));
  model.quantize_input(test::span_of(x), codes, input);
  return codes;
}

}  // namespace

TEST_CASE("a network of two inputs and two outputs trains, converts and equals its simulation",
          "[quant][lists]") {
  const bool shared = GENERATE(false, true);
  const int bits = GENERATE(8, 4, 2);
  CAPTURE(shared, bits);
  ListTowers net(shared);
  const std::vector<Tensor> example = examples(2, 1);
  {
    const std::vector<Tensor> y = net(example);
    REQUIRE(y.size() == 2);
    CHECK(y[0].shape() == Shape{2, 4});
    CHECK(y[1].shape() == Shape{2, 8});
  }
  prepare_qat(net, example, QConfig::bits(bits, bits));
  CHECK(net.slots().inputs.size() == 2);
  CHECK(plan(net, example).convertible());
  train_lists(net, 4);
  const IntegerModel model = convert(net, example);
  const std::vector<Tensor> batch = examples(300, 9);  // more than one chunk
  check_parity(net, model, batch);

  REQUIRE(model.input_count() == 2);
  REQUIRE(model.output_count() == 2);
  CHECK(model.input_shape(0) == Shape{5, 5, 2});
  CHECK(model.input_shape(1) == Shape{5});
  CHECK(model.output_size(0) == 4);
  CHECK(model.output_size(1) == 8);
  const integer::Program& program = model.program();
  CHECK_FALSE(program.value(program.outputs[0]).is_codes());
  REQUIRE(program.value(program.outputs[1]).is_codes());
  // If the logits are computed from the features, the features have the bits of hidden layers.
  // Otherwise they are only an output of the network, and have 8 bits.
  CHECK(program.value(program.outputs[1]).params->type.bits == (shared ? bits : 8));
  const Parity parity = verify_parity(net, model, batch);
  CHECK(parity.layers[0].name == "input0");
  CHECK(parity.layers[1].name == "input1");
  CHECK(parity.logits == 300 * (4 + 8));
  CHECK(std::count_if(parity.layers.begin(), parity.layers.end(), [](const LayerParity& layer) {
          return layer.is_output;
        }) == 2);

  // The model's real values equal the network's outputs, and are its integers times their scale.
  freeze(net);
  net.eval();
  const std::vector<Tensor> expected = net(batch);
  const std::vector<uint8_t> image = bytes_of(model, batch[0], 0);
  const std::vector<uint8_t> vector = bytes_of(model, batch[1], 1);
  std::vector<int32_t> logits(300 * 4);
  std::vector<int32_t> features(300 * 8);
  model.run_codes(std::vector<std::span<const uint8_t>>{image, vector},
                  std::vector<std::span<int32_t>>{logits, features});
  std::vector<float> real_logits(logits.size());
  std::vector<float> real_features(features.size());
  model.run(std::vector<std::span<const float>>{test::span_of(batch[0]), test::span_of(batch[1])},
            std::vector<std::span<float>>{real_logits, real_features});
  CHECK(real_logits == values(expected[0]));
  CHECK(real_features == values(expected[1]));
  const std::vector<double>& scale = model.program().value(model.program().outputs[0]).scale;
  for (size_t i = 0; i < logits.size(); ++i)
    CHECK(real_logits[i] == static_cast<float>(scale[i % scale.size()] * logits[i]));
  for (size_t i = 0; i < features.size(); ++i) {
    CHECK(features[i] >= 0);
    CHECK(real_features[i] == static_cast<float>(model.logit_scale(1) * features[i]));
  }

  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == model.program());
  CHECK(loaded.hash() == model.hash());
  check_parity(net, loaded, batch);
}

TEST_CASE("quantization after training takes lists of inputs", "[quant][lists]") {
  ListTowers net(true);
  const std::vector<Tensor> example = examples(2, 1);
  train_lists(net, 3);
  prepare_ptq(net, example, QConfig::int8());
  for (uint64_t i = 0; i < 3; ++i) calibrate(net, examples(20, i));
  check_parity(net, convert(net, example), examples(40, 9));
}

TEST_CASE("inputs of a wrong number or size throw ShapeError", "[quant][lists]") {
  ListTowers net(false);
  const std::vector<Tensor> example = examples(2, 1);
  const std::vector<Tensor> one{example[0]};
  const std::vector<Tensor> three{example[0], example[1], example[1]};
  QUANTRAIN_CHECK_ERROR(net(one), ShapeError, "[TwoTowers] takes an image and a vector, got 1");
  QUANTRAIN_CHECK_ERROR(net(example[0]), ShapeError, "[TwoTowers] does not take one input");
  QUANTRAIN_CHECK_ERROR(
      net(example[0], example[1]), ShapeError, "[TwoTowers] does not take two inputs");
  Mul product;
  CHECK(product(std::vector<Tensor>{example[1], example[1]}).size() == 1);
  QUANTRAIN_CHECK_ERROR(product(three), ShapeError, "[Mul] does not take 3 inputs");
  QUANTRAIN_CHECK_ERROR(product(one), ShapeError, "[Mul] does not take one input");
  QUANTRAIN_CHECK_ERROR(product(std::vector<Tensor>{}), ShapeError, "[Mul] does not take 0 inputs");
  CHECK_THROWS_AS(Add{}(three), ShapeError);
  ReLU relu;
  CHECK(values(relu(one)[0]) == values(relu(example[0])));
  QUANTRAIN_CHECK_ERROR(relu(example), ShapeError, "[ReLU] does not take two inputs");

  const QConfig config = QConfig::int8();
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, one, config), ShapeError, "got 1");
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(net, std::vector<Tensor>{}, config), ShapeError, "there is no example");
  const std::vector<Tensor> uneven{random_images({2, 5, 5, 2}, 1), random_images({3, 5}, 1)};
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, uneven, config), ShapeError, "got [3, 5]");
  CHECK(Plugged(net).empty());

  prepare_qat(net, example, config);
  net(example);
  const IntegerModel model = convert(net, example);
  QUANTRAIN_CHECK_ERROR(convert(net, one), ShapeError, "got 1");
  QUANTRAIN_CHECK_ERROR(plan(net, one), ShapeError, "got 1");
  QUANTRAIN_CHECK_ERROR(
      verify_parity(net, model, one), ShapeError, "the model takes 2 inputs, got 1");
  QUANTRAIN_CHECK_ERROR(
      verify_parity(net, model, three), ShapeError, "the model takes 2 inputs, got 3");
  QUANTRAIN_CHECK_ERROR(
      verify_parity(net, model, example[0]), ShapeError, "the model takes 2 inputs, got 1");
  const std::vector<Tensor> swapped{example[1], example[0]};
  QUANTRAIN_CHECK_ERROR(verify_parity(net, model, swapped),
                        ShapeError,
                        "the model takes samples [5, 5, 2], got a batch [2, 5]");
  QUANTRAIN_CHECK_ERROR(
      verify_parity(net, model, uneven), ShapeError, "batches of different sizes");
  const std::vector<uint8_t> image(2 * 50);
  std::vector<int32_t> y(8);
  QUANTRAIN_CHECK_ERROR(
      model.run_codes(image, y), ShapeError, "the network has 2 inputs and 2 outputs, got 1 and 1");
  QUANTRAIN_CHECK_ERROR(model.classify_codes(image, std::span(y).first(2)), ShapeError, "2 inputs");
}

TEST_CASE("two outputs may be the same tensor, and an output may be the input", "[quant][lists]") {
  using Kind = Outputs::Kind;
  const Kind kind = GENERATE(Kind::kTwice, Kind::kInput);
  Outputs net(kind);
  const std::vector<Tensor> example{random_images({2, 6}, 1)};
  prepare_qat(net, example, QConfig::int8());
  net(example);
  const IntegerModel model = convert(net, example);
  CHECK(model.program().steps.size() == 1);
  CHECK(model.program().outputs ==
        (kind == Kind::kTwice ? std::vector<int>{1, 1} : std::vector<int>{1, 0}));
  check_parity(net, model, std::vector<Tensor>{random_images({40, 6}, 2)});
  const Tensor x = random_images({3, 6}, 4);
  std::vector<std::vector<float>> y;
  for (size_t i = 0; i < 2; ++i) y.emplace_back(static_cast<size_t>(3 * model.output_size(i)));
  const std::vector<std::span<const float>> inputs{test::span_of(x)};
  model.run(inputs, std::vector<std::span<float>>(y.begin(), y.end()));
  const DeployedMode deployed(net);
  const std::vector<Tensor> expected = net(std::vector<Tensor>{x});
  for (size_t i = 0; i < 2; ++i) CHECK(y[i] == values(expected[i]));
}

TEST_CASE("missing or constant outputs, and inputs that nothing reads, are errors",
          "[quant][lists]") {
  using Kind = Outputs::Kind;
  const Tensor x = random_images({2, 6}, 1);
  Outputs none(Kind::kNone);
  QUANTRAIN_CHECK_ERROR(none(std::vector<Tensor>{x}), ShapeError, "gives no output");
  Outputs unused(Kind::kUnused);
  const std::vector<Tensor> apart{x, random_images({2, 6}, 2)};
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(unused, apart, QConfig::int8()), GraphError, "input 1 is not used");
  Outputs constant(Kind::kConstant);
  QUANTRAIN_CHECK_ERROR(prepare_qat(constant, std::vector<Tensor>{x}, QConfig::int8()),
                        GraphError,
                        "the network's output does not depend on its input");
}

}  // namespace quantrain::quant
