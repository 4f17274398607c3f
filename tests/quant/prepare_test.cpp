#include "quant/prepare/prepare.hpp"

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using test::check_on_every_isa;
using test::check_parity;
using test::conv_net;
using test::last_output;
using test::random_images;
using test::step_output;
using test::train_a_little;

/// Networks that cannot be prepared.
class Custom : public Module {
 public:
  enum class Kind { kNoLayer, kTwice, kReluInFront, kReluBehind };
  explicit Custom(Kind kind)
      : kind_(kind),
        conv_(add("conv", Conv2d{1, 2, {.kernel = 3}})),
        relu_(add("relu", ReLU{})),
        pool_(add("pool", MaxPool2d{2})),
        sum_(add("sum", Add{})) {}
  std::string_view type() const override { return "Custom"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = (*conv_)(x);
    switch (kind_) {
      case Kind::kNoLayer: return quantrain::add(y, y);
      case Kind::kTwice: return (*sum_)(y, (*conv_)(x));
      case Kind::kReluInFront: return (*relu_)((*conv_)((*relu_)(x)));
      case Kind::kReluBehind: return (*relu_)((*pool_)((*relu_)(y)));
    }
    return y;
  }

 private:
  Kind kind_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<MaxPool2d> pool_;
  std::shared_ptr<Add> sum_;
};

/// Runs its pooling, dropout and flatten layers twice; they need nothing in their slots. If
/// `scaled`, multiplies the result by a value computed from a parameter.
class Repeated : public Module {
 public:
  explicit Repeated(bool scaled)
      : scale_(add_parameter("scale", Tensor::full({1}, 0.5f))),
        scaled_(scaled),
        conv1_(add("conv1", Conv2d{1, 3, {.kernel = 3, .padding = 1}})),
        conv2_(add("conv2", Conv2d{3, 3, {.kernel = 3, .padding = 1}})),
        relu_(add("relu", ReLU{})),
        pool_(add("pool", MaxPool2d{2})),
        dropout_(add("dropout", Dropout{0.1f})),
        flatten_(add("flatten", Flatten{})),
        fc_(add("fc", Linear{12, 4})) {}
  std::string_view type() const override { return "Repeated"; }

 protected:
  Tensor forward(const Tensor& x) override {
    Tensor y = (*dropout_)((*pool_)((*relu_)((*conv1_)(x))));
    y = (*dropout_)((*pool_)((*conv2_)(y)));
    y = (*fc_)((*flatten_)((*flatten_)(y)));
    return scaled_ ? mul(y, quantrain::add(scale_, Tensor::full({1}, 1.0f))) : y;
  }

 private:
  Tensor scale_;
  bool scaled_;
  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<Conv2d> conv2_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<MaxPool2d> pool_;
  std::shared_ptr<Dropout> dropout_;
  std::shared_ptr<Flatten> flatten_;
  std::shared_ptr<Linear> fc_;
};

}  // namespace

TEST_CASE("a batch norm's own mode decides whether it uses batch statistics", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  set_phase(net, Phase::kFrozen);
  const Tensor images = random_images({5, 8, 8, 1}, 9);
  net.eval();
  const Tensor deployed = net(images);
  SECTION("in evaluation inside a network in training") {
    net.train();
    for (const char* norm : {"1", "5"}) net.find(norm).eval();
    CHECK(quantrain::test::values(net(images)) == quantrain::test::values(deployed));
  }
  SECTION("in training after a convolution in evaluation") {
    std::vector<NamedState> before;  // a pass in training changes the running statistics
    for (const NamedState& entry : net.named_buffers()) before.push_back(entry.copy());
    net.train();
    const Tensor training = net(images);
    std::vector<NamedState> buffers = net.named_buffers();
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_values(before[i]);
    for (const char* conv : {"0", "4"}) net.find(conv).eval();
    CHECK(quantrain::test::values(net(images)) == quantrain::test::values(training));
  }
}

TEST_CASE("logits keep their accumulators after a reshape", "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  const auto check = [&](Sequential net, QConfig config) {
    prepare_qat(net, example, config);
    train_a_little(net, {6, 8, 8, 1}, 2);
    const IntegerModel model = convert(net, example);
    CHECK_FALSE(last_output(model).is_codes());
    CHECK(model.output_size() == 4);
    check_parity(net, model, random_images({9, 8, 8, 1}, 9));
    const Plan rows = plan(net, example);
    CHECK(rows.rows.back().output_bits == 32);
    CHECK(rows.convertible());
  };
  check(
      Sequential{
          Conv2d{1, 3, {.kernel = 3, .stride = 2}}, ReLU{}, Conv2d{3, 4, {.kernel = 3}}, Flatten{}},
      QConfig::bits(4, 3));
  check(Sequential{Flatten{}, Linear{64, 4}, Flatten{}}, QConfig::int8());
}

TEST_CASE("reshaped logits of a pooling layer have 8 bits, even if hidden layers have fewer",
          "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{Conv2d{1, 3, {.kernel = 3}},
                 ReLU{},
                 Conv2d{3, 4, {.kernel = 1}},
                 GlobalAvgPool2d{},
                 Flatten{}};
  prepare_qat(net, example, QConfig::bits(4, 3));
  train_a_little(net, {6, 8, 8, 1}, 2);
  const IntegerModel model = convert(net, example);
  CHECK(step_output(model, 0).params.value().type.bits == 3);
  CHECK(last_output(model).params.value().type.bits == 8);
  check_parity(net, model, random_images({9, 8, 8, 1}, 9));
}

TEST_CASE("quantization after training takes its ranges from all batches", "[quant][prepare]") {
  const Tensor example = random_images({2, 12}, 1);
  // highest() returns the highest value of the first layer's range. The layer is an identity. It
  // sees a batch of one sample, then larger batches, then a batch with an outlier.
  using Prepare = void (*)(Module&, const Tensor&, const QConfig&);
  const Prepare after = prepare_ptq;
  const auto highest = [&](Prepare prepare, const QConfig& config) {
    Sequential net{Linear{12, 12, {.bias = false}}, ReLU{}, Linear{12, 4}};
    Tensor weight = dynamic_cast<Linear&>(net.find("0")).weight();
    for (int64_t i = 0; i < weight.elements(); ++i) weight.mutable_data()[i] = i % 13 == 0;
    prepare(net, example, config);
    const auto run = [&] {
      net(Tensor::full({1, 12}, 0.2f));
      for (int i = 0; i < 3; ++i) net(Tensor::full({8, 12}, 0.4f));
      Tensor last = Tensor::full({256, 12}, 0.4f);
      last.mutable_data()[0] = 1.0f;
      net(last);
    };
    if (prepare == after) {
      const Calibration calibration(net);
      run();
    } else {
      run();
    }
    return Plugged(net).activations[0]->float_range().max;
  };
  CHECK(highest(prepare_ptq, QConfig::int8()) == quantrain::test::Approx(1.0));
  CHECK(highest(prepare_ptq, QConfig::int4()) == quantrain::test::Approx(0.4));
  const double moved = 0.99 * (0.4 - 0.2 * 0.99 * 0.99 * 0.99) + 0.01;
  CHECK(highest(prepare_qat, QConfig::int8()) == quantrain::test::Approx(1.0));
  CHECK(highest(prepare_qat, QConfig::int4()) == quantrain::test::Approx(0.4));
  QConfig config = QConfig::int8();
  config.model.activation.observer = MovingAverageOptions{};
  CHECK(highest(prepare_ptq, config) == quantrain::test::Approx(moved));
}

TEST_CASE("layers that need no slot may run twice", "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Repeated net(false);
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 2);
  check_parity(net, convert(net, example), random_images({9, 8, 8, 1}, 9));
}

TEST_CASE("layers that share their parameters have ranges of their own", "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Conv2d conv{3, 3, {.kernel = 3, .padding = 1}};
  Conv2d again{conv.weight(), conv.bias(), conv.options()};
  Linear fc{48, 48};
  Linear fc_again{fc.weight(), fc.bias()};
  const Tensor shared[] = {conv.weight(), fc.weight()};
  Sequential net{Conv2d{1, 3, {.kernel = 3, .padding = 1}},
                 std::move(conv),
                 ReLU{},
                 std::move(again),
                 MaxPool2d{2},
                 Flatten{},
                 std::move(fc),
                 ReLU{},
                 std::move(fc_again),
                 ReLU{},
                 Linear{48, 4}};
  CHECK(net.parameters().size() == 8);
  QConfig config = QConfig::int8();
  if (GENERATE(false, true)) config.model.weight.estimator = Estimator::kLearned;
  prepare_qat(net, example, config);
  train_a_little(net, {6, 8, 8, 1}, 3);
  CHECK(dynamic_cast<Conv2d&>(net.find("3")).weight().same_as(shared[0]));
  CHECK(dynamic_cast<Linear&>(net.find("8")).weight().same_as(shared[1]));
  const IntegerModel model = convert(net, example);
  CHECK_FALSE(step_output(model, 1).params.value() == step_output(model, 2).params.value());
  check_parity(net, model, random_images({9, 8, 8, 1}, 9));
}

TEST_CASE("two layers share a batch norm and PReLU, and have ranges of their own",
          "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Conv2d conv{3, 3, {.kernel = 3, .padding = 1}};
  BatchNorm2d norm{3, {.momentum = 0.3f}};
  PReLU prelu{3};
  Conv2d conv_again{conv.weight(), conv.bias(), conv.options()};
  BatchNorm2d norm_again{
      norm.gamma(), norm.beta(), norm.running_mean(), norm.running_var(), norm.options()};
  PReLU prelu_again{prelu.weight()};
  Sequential net{Conv2d{1, 3, {.kernel = 3, .padding = 1}},
                 std::move(conv),
                 std::move(norm),
                 std::move(prelu),
                 std::move(conv_again),
                 std::move(norm_again),
                 std::move(prelu_again),
                 MaxPool2d{2},
                 Flatten{},
                 Linear{48, 4}};
  CHECK(net.parameters().size() == 9);
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  const auto& first = dynamic_cast<BatchNorm2d&>(net.find("2"));
  const auto& second = dynamic_cast<BatchNorm2d&>(net.find("5"));
  CHECK(first.gamma().same_as(second.gamma()));
  CHECK(first.running_var().same_as(second.running_var()));
  CHECK(second.momentum() == 0.3f);
  const IntegerModel model = convert(net, example);
  CHECK_FALSE(step_output(model, 1).params.value() == step_output(model, 3).params.value());
  check_parity(net, model, random_images({9, 8, 8, 1}, 9));
}

TEST_CASE("an operation that does not depend on the input needs no layer", "[quant][prepare]") {
  // The sum of parameters needs no layer, but its product with the logits does.
  Repeated net(true);
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, random_images({2, 8, 8, 1}, 1), QConfig::int8()),
                        GraphError,
                        "[Repeated] operation mul of [2, 4] in its forward() has no place for a "
                        "FakeQuantize: run it in a layer of its own, registered by add(name, "
                        "layer)");
}

TEST_CASE("a part of a network is prepared and converted with paths relative to it",
          "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential whole;
  Module& part = *whole.add("part", conv_net());
  QConfig config = QConfig::int8();
  config.layers["4"] = QConfig::int4().model;
  prepare_qat(part, example, config);
  train_a_little(whole, {6, 8, 8, 1}, 2);
  CHECK(plan(part, example).rows[0].folded == "1, 2");
  const IntegerModel model = convert(part, example);
  CHECK(step_output(model, 0).name == "0");
  check_parity(part, model, random_images({9, 8, 8, 1}, 9));
}

TEST_CASE("prepare refuses what it cannot quantize, and plugs nothing in", "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  const QConfig config = QConfig::int8();
  const auto refuses = [&](Module& net, const char* text) {
    QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, config), GraphError, text);
    CHECK(Plugged(net).empty());
  };
  Custom no_layer(Custom::Kind::kNoLayer);
  refuses(
      no_layer,
      "[Custom] operation add of [2, 6, 6, 2] and [2, 6, 6, 2] in its forward() has no place for "
      "a FakeQuantize: use the layer Add, registered by add(name, layer)");
  Custom twice(Custom::Kind::kTwice);
  refuses(twice, "[conv] the layer runs twice");
  Custom in_front(Custom::Kind::kReluInFront);
  refuses(in_front, "[relu] the layer runs twice");
  Custom behind(Custom::Kind::kReluBehind);
  refuses(behind, "[relu] the layer runs twice");
  Sequential nothing{Flatten{}};
  refuses(nothing, "[Sequential] none of the network's operations can be quantized: flatten; ");
  Sequential net = conv_net();
  prepare_qat(net, example, config);
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, config), GraphError, "prepared already");
  Sequential wrong = conv_net();
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(wrong, Tensor::zeros({0, 8, 8, 1}), config), ShapeError, "at least one sample");
  QConfig unknown = config;
  unknown.layers["no.such"] = config.model;
  QUANTRAIN_CHECK_ERROR(prepare_qat(wrong, example, unknown),
                        QuantError,
                        "layer \"no.such\" does not exist; layers to quantize: 0 4 9");
  QConfig type = config;
  type.types["Softmax"] = config.model;
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(wrong, example, type),
      QuantError,
      "no layers of type \"Softmax\" are quantized in this network; those that are: Conv2d Linear");
  QConfig add = config;  // a type that other networks have
  add.types["Add"] = config.model;
  QUANTRAIN_CHECK_ERROR(prepare_qat(wrong, example, add),
                        QuantError,
                        "no layers of type \"Add\" are quantized in this network; those that are: "
                        "Conv2d Linear");
  QConfig relu = config;
  relu.layers["2"] = config.model;
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(wrong, example, relu), QuantError, "layer \"2\" is fused with the layer \"0\"");
  CHECK(Plugged(wrong).empty());
  Sequential long_sum{Linear{33156, 2}};
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(long_sum, random_images({1, 33156}, 1), config), QuantError, "33156");
  Sequential full_range{Linear{32897, 2}};
  QConfig full = config;
  full.model.weight.narrow = false;
  QUANTRAIN_CHECK_ERROR(prepare_qat(full_range, random_images({1, 32897}, 1), full),
                        QuantError,
                        "sums of 32897 products are longer than 32896");
  QConfig four_bits = config;
  four_bits.model.weight.bits = 4;
  Sequential longer{Linear{601537, 1}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(longer, random_images({1, 601537}, 1), four_bits),
                        QuantError,
                        "sums of 601537 products are longer than 601536: an accumulator could "
                        "overflow with weights of type s4 narrow");
  Sequential no_outputs{Linear{Tensor::zeros({0, 12})}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(no_outputs, random_images({2, 12}, 1), config),
                        QuantError,
                        "[0] weight [0, 12] has no elements to quantize");
  Sequential no_inputs{Linear{Tensor::zeros({3, 0})}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(no_inputs, Tensor::zeros({2, 0}), config),
                        QuantError,
                        "[0] weight [3, 0] has no elements to quantize");
}

TEST_CASE("sums may be longer if weights have fewer bits", "[quant][prepare]") {
  for (const int bits : {4, 2}) {
    Sequential net{Linear{36864, 3}};
    const Tensor example = random_images({2, 36864}, 1);
    QConfig config = QConfig::int8();
    config.model.weight.bits = bits;
    prepare_ptq(net, example, config);
    calibrate(net, example);
    check_on_every_isa(net, convert(net, example), example, random_images({3, 36864}, 2));
  }
}

TEST_CASE("a layer that stays in float has sums of any length", "[quant][prepare]") {
  Sequential net{Linear{33156, 2}, ReLU{}, Linear{2, 2}};
  QConfig config = QConfig::int8();
  config.layers["0"] = config.model;
  config.layers["0"].quantize = false;
  const Tensor example = random_images({2, 33156}, 1);
  prepare_qat(net, example, config);
  CHECK(net(example).shape() == Shape{2, 2});
}

}  // namespace quantrain::quant
