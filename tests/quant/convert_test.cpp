#include "quant/lowering/convert.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "framework/autograd/ops.hpp"
#include "framework/autograd/ops/elementwise.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "quant/prepare/fake_quantize_op.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant {
namespace {

using test::branched_net;
using test::check_on_every_isa;
using test::check_parity;
using test::conv_net;
using test::mlp;
using test::random_images;
using test::train_a_little;

/// y = log_softmax(x).
class LogSoftmax : public Module {
 public:
  std::string_view type() const override { return "LogSoftmax"; }

 protected:
  Tensor forward(const Tensor& x) override { return log_softmax(x); }
};

/// y = x / (1 + sum of x^2), row by row.
class Unit : public Module {
 public:
  std::string_view type() const override { return "Unit"; }

 protected:
  Tensor forward(const Tensor& x) override { return x / (sum(x * x, 1, true) + 1.0f); }
};

/// A reshape, a convolution, its ReLU and another reshape. If `in_the_middle` is set, a third
/// reshape lies between the convolution and its ReLU.
class Reshaped : public Module {
 public:
  explicit Reshaped(bool in_the_middle)
      : in_the_middle_(in_the_middle),
        conv_(add("conv", Conv2d{4, 3, {.kernel = 3, .padding = 1}})),
        relu_(add("relu", ReLU{})),
        fc_(add("fc", Linear{24, 4})) {}
  std::string_view type() const override { return "Reshaped"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const int64_t n = x.dim(0);
    Tensor y = (*conv_)(reshape(x, {n, 2, 4, 4}));
    if (in_the_middle_) y = reshape(y, {n, 12, 2});
    return (*fc_)(reshape((*relu_)(y), {n, 24}));
  }

 private:
  bool in_the_middle_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Linear> fc_;
};

/// A convolution whose output is quantized to two ranges; the results are added.
class TwoRanges : public Module {
 public:
  TwoRanges()
      : conv_(add("conv", Conv2d{1, 2, {.kernel = 3}})),
        sum_(add("sum", Add{})),
        first_(add("first", FakeQuantize{FakeQuantizeConfig::q8()})),
        second_(add("second", FakeQuantize{FakeQuantizeConfig::q4()})) {}
  std::string_view type() const override { return "TwoRanges"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = (*conv_)(x);
    return (*sum_)((*first_)(y), (*second_)(y));
  }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<FakeQuantize> first_;
  std::shared_ptr<FakeQuantize> second_;
};

/// A convolution with a reshape between it and its range, or between it and its ReLU.
class LateRange : public Module {
 public:
  explicit LateRange(bool activation)
      : conv_(add("conv", Conv2d{1, 2, {.kernel = 3}})),
        relu_(add("relu", ReLU{})),
        range_(add("range", FakeQuantize{FakeQuantizeConfig::q8()})),
        activation_(activation) {}
  std::string_view type() const override { return "LateRange"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor flat = flatten((*conv_)(x));
    return (*range_)(activation_ ? (*relu_)(flat) : flat);
  }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<FakeQuantize> range_;
  bool activation_;
};

double largest(std::span<const float> values) {
  double result = 0.0;
  for (const float value : values) result = std::max(result, std::abs(double{value}));
  return result;
}

double largest(const Tensor& x) {
  const Floats values = x.floats();
  return largest(std::span(values.data(), static_cast<size_t>(x.elements())));
}

double largest_difference(const Tensor& a, const Tensor& b) { return largest(sub(a, b)); }

/// `node` is a convolution or linear layer that runs twice: in float simulation and in integer
/// simulation. The real values of the two inputs differ by at most `apart`. Returns a bound for the
/// difference between the real values of the two outputs.
/// docs/quantization.md (17)
double product_bound(const GraphNode& node, double apart) {
  const Tensor& x = node.inputs[0];
  const Tensor& weight = node.inputs[1];
  const int64_t reduction = weight.elements() / weight.dim(0);
  const Floats w = weight.floats();
  double row = 0.0;  // the largest sum of |w| over an output channel
  for (int64_t o = 0; o < weight.dim(0); ++o) {
    double sum = 0.0;
    for (int64_t i = 0; i < reduction; ++i) sum += std::abs(double{w.data()[o * reduction + i]});
    row = std::max(row, sum);
  }
  const double roundings = static_cast<double>(reduction + 4) * 0x1p-24;
  const double r = roundings / (1.0 - roundings);
  const double step = largest(x.codes()->params.scale) * largest(weight.codes()->params.scale);
  return row * apart + r * (row * largest(x) + largest(node.inputs[2])) + step / 2.0;
}

}  // namespace

TEST_CASE("QAT networks convert to integers that equal the simulation", "[quant][convert]") {
  const int bits = GENERATE(8, 4, 2);
  const Shape batch{6, 8, 8, 1};
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  SECTION("convolutions with batch norm") {
    Sequential net = conv_net();
    prepare_qat(net, example, QConfig::bits(bits, bits));
    train_a_little(net, batch, 4);
    check_parity(net, convert(net, example), random_images({70, 8, 8, 1}, 9));
    CHECK(net.training());
  }
  SECTION("branches, sums, concatenation, average pools, groups") {
    Sequential net = branched_net();
    prepare_qat(net, example, QConfig::bits(bits, bits));
    train_a_little(net, batch, 4);
    check_parity(net, convert(net, example), random_images({70, 8, 8, 1}, 9));
  }
  SECTION("linear layers") {
    Sequential net = mlp();
    prepare_qat(net, random_images({2, 12}, 1), QConfig::bits(bits, bits));
    train_a_little(net, {6, 12}, 4);
    check_parity(net, convert(net, random_images({1, 12}, 1)), random_images({300, 12}, 9));
  }
}

TEST_CASE("saving and loading keep the model of a trained network", "[quant][convert]") {
  const quantrain::test::TemporaryFolder folder;
  Sequential net = branched_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, QConfig::int4());
  train_a_little(net, {6, 8, 8, 1}, 2);
  const IntegerModel model = convert(net, example);
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == model.program());
  CHECK(loaded.hash() == model.hash());
  CHECK(loaded.size_bytes() == model.size_bytes());
  CHECK(test::last_output(loaded).scale == test::last_output(model).scale);
  const Tensor images = random_images({9, 8, 8, 1}, 3);
  std::vector<int32_t> a(static_cast<size_t>(9 * model.output_size()));
  std::vector<int32_t> b(a.size());
  model.run(test::span_of(images), a);
  loaded.run(test::span_of(images), b);
  CHECK(a == b);
  check_parity(net, loaded, images);
}

TEST_CASE("a network converts to the same integers on every instruction set", "[quant][convert]") {
  Sequential net = GENERATE(0, 1) == 0 ? conv_net() : branched_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  const IntegerModel model = convert(net, example);
  const Tensor images = random_images({40, 8, 8, 1}, 9);
  std::vector<int32_t> expected(static_cast<size_t>(40 * model.output_size()));
  model.run(test::span_of(images), expected);
  check_on_every_isa(net, model, example, images);
  const Isa chosen = chosen_isa();
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    INFO(isa_name(isa));
    std::vector<int32_t> result(expected.size());
    model.run(test::span_of(images), result);
    CHECK((result == expected));
  }
  set_isa(chosen);
}

TEST_CASE("PTQ is QAT with zero training steps", "[quant][convert]") {
  Sequential net = conv_net();
  train_a_little(net, {8, 8, 8, 1}, 5);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  net.eval();
  const Tensor images = random_images({40, 8, 8, 1}, 5);
  const Floats before = net(images).floats();
  prepare_ptq(net, example, QConfig::int8());
  {
    const Calibration calibration(net);
    const Tensor float_logits = net(images);
    // During calibration the network computes in float. Only the batch norms, which prepare_ptq()
    // changed, may round differently.
    for (int64_t i = 0; i < float_logits.elements(); ++i) {
      CHECK(float_logits.floats()[i] == quantrain::test::Approx(before.data()[i]).margin(1e-5));
    }
  }
  const IntegerModel model = convert(net, example);
  check_parity(net, model, images);
  std::vector<float> logits(static_cast<size_t>(40 * model.output_size()));
  model.run(test::span_of(images), logits);
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(logits[i] - before.data()[i])));
    size = std::max(size, std::abs(static_cast<double>(before.data()[i])));
  }
  CHECK(error < 0.05 * size);  // 8 bits: about 1/256 for each of three layers, with a margin
}

TEST_CASE("with other settings than the defaults, integers equal the simulation, too",
          "[quant][convert]") {
  Tensor example = random_images({2, 8, 8, 1}, 1);
  Tensor images = random_images({33, 8, 8, 1}, 9);
  QConfig config = QConfig::int8();
  SECTION("per tensor weights, full range") {
    config.model.weight.per_channel = false;
    config.model.weight.narrow = false;
  }
  SECTION("signed activations of 5 bits") {
    config.model.activation = {.bits = 5, .is_signed = true};
  }
  SECTION("learned scales") {
    config = QConfig::int4();
    config.model.weight.estimator = Estimator::kLearned;
    config.model.activation.estimator = Estimator::kLearned;
  }
  SECTION("8-bit outputs") { config.output_bits = 8; }
  SECTION("float inputs with a range around 0") {
    config.input_range = {-1.0f, 2.0f};
    example = Tensor::from(example.shape(), test::span_of(example));
    images = Tensor::from(images.shape(), test::span_of(images));
  }
  SECTION("layers with their own numbers of bits") {
    config.types["Linear"] = QConfig::bits(3, 6).model;
    config.layers["0"] = QConfig::bits(7, 5).model;
  }
  SECTION("each kind of observer") {
    config.model.activation.observer = GENERATE(from_range(observer_specs()));
  }
  const auto check_with = [&](Sequential net) {
    prepare_qat(net, example, config);
    if (config.input_range) {
      net(images);  // sets the ranges
    } else {
      train_a_little(net, {6, 8, 8, 1}, 3);
    }
    check_parity(net, convert(net, example), images);
  };
  check_with(conv_net());
  check_with(branched_net());
}

TEST_CASE("frozen training computes the deployed network", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  freeze(net);
  const IntegerModel model = convert(net, example);
  const Tensor images = random_images({5, 8, 8, 1}, 9);
  net.train();
  const Tensor logits = net(images);
  std::vector<float> deployed(static_cast<size_t>(logits.elements()));
  model.run(test::span_of(images), deployed);
  for (size_t i = 0; i < deployed.size(); ++i) CHECK(deployed[i] == logits.floats()[i]);
}

TEST_CASE("convert refuses a slice of the batch axis, and a pad with a value that no code has",
          "[quant][convert][moves]") {
  class Moved : public Module {
   public:
    explicit Moved(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {}
    std::string_view type() const override { return "Moved"; }

   protected:
    Tensor forward(const Tensor& x) override { return f_(x); }

   private:
    std::function<Tensor(const Tensor&)> f_;
  };
  const Tensor example = random_images({2, 4, 4, 1}, 1);
  const auto refusal = [&](const std::function<Tensor(const Tensor&)>& f) {
    Sequential net{Moved{f}, GlobalAvgPool2d{}, Flatten{}, Linear{1, 2}};
    prepare_ptq(net, example, QConfig::int8());
    calibrate(net, example);
    convert(net, example);
  };
  // Code n of the input means n / 255, so 0.3 lies between the values of two codes.
  const auto padded = [](float value) {
    return [=](const Tensor& x) { return pad(x, {0, 1, 1, 0}, {0, 0, 0, 0}, value); };
  };
  QUANTRAIN_CHECK_ERROR(refusal(padded(0.3f)),
                        GraphError,
                        "[0] pad of [2, 4, 4, 1] has no integer form if it changes the batch axis, "
                        "or fills with a value that no code represents: leave the first axis "
                        "unchanged, and fill with 0");
  QUANTRAIN_CHECK_ERROR(
      refusal([](const Tensor& x) { return slice(x, 0, {.begin = 1}); }),
      GraphError,
      "[0] slice of [2, 4, 4, 1] has no integer form if it changes the batch axis");
  CHECK_NOTHROW(refusal(padded(0.0f)));
}

TEST_CASE("convert refuses what has no integer form, and names it", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential plain = conv_net();
  QUANTRAIN_CHECK_ERROR(convert(plain, example), GraphError, "not prepared");
  Sequential squashed{Conv2d{1, 2, {.kernel = 3}}, LogSoftmax{}, Flatten{}, Linear{72, 3}};
  QConfig in_float = QConfig::int8();
  in_float.types["LogSoftmax"] = LayerConfig{.quantize = false, .weight = {}, .activation = {}};
  prepare_qat(squashed, example, in_float);
  CHECK_FALSE(plan(squashed, example).convertible());
  squashed(example);
  QUANTRAIN_CHECK_ERROR(convert(squashed, example), GraphError, "log_softmax has no integer form");

  Sequential coded = conv_net();
  prepare_qat(coded, example, QConfig::int8());
  coded(example);
  const Tensor codes = fake_quantize(example, {{.bits = 4}, -1, {0.1f}, {0}});
  QUANTRAIN_CHECK_ERROR(
      convert(coded, codes), QuantError, "the codes of this input mean [0, 1.5] (u4 scale 0.1");

  QConfig affine = QConfig::int8();
  affine.model.weight.scheme = QScheme::kAffine;
  Sequential net = conv_net();
  prepare_qat(net, example, affine);
  net(example);
  QUANTRAIN_CHECK_ERROR(
      convert(net, example),
      QuantError,
      "[0] affine weights exist in simulation only: set WeightConfig::scheme to kSymmetric");

  QConfig wide = QConfig::int8();
  wide.model.activation.bits = 16;
  Sequential wide_net = conv_net();
  prepare_qat(wide_net, example, wide);
  wide_net(example);
  QUANTRAIN_CHECK_ERROR(convert(wide_net, example), QuantError, "16 bits exist in simulation only");

  QConfig floats = QConfig::int8();
  floats.layers["4"] = LayerConfig{.quantize = false, .weight = {}, .activation = {}};
  Sequential part = conv_net();
  prepare_qat(part, example, floats);
  part(example);
  QUANTRAIN_CHECK_ERROR(
      convert(part, example),
      QuantError,
      "[4] the weights are not quantized: configure the layer with quantize = true");

  // A layer of several operations, without a place for a FakeQuantize.
  Sequential scaled{Linear{12, 6}, Unit{}, Linear{6, 4}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(scaled, random_images({2, 12}, 1), QConfig::int8()),
                        GraphError,
                        "has no place for a FakeQuantize");
  QConfig without = QConfig::int8();
  without.types["Unit"] = LayerConfig{.quantize = false, .weight = {}, .activation = {}};
  prepare_qat(scaled, random_images({2, 12}, 1), without);
  train_a_little(scaled, {6, 12}, 2);
  QUANTRAIN_CHECK_ERROR(convert(scaled, random_images({2, 12}, 1)), GraphError, "[1] ");

  // Two ranges may follow a layer's own FakeQuantize. Without the layer's FakeQuantize, the layer
  // would have to give the codes of both ranges.
  TwoRanges two;
  prepare_qat(two, example, QConfig::int8());
  two(example);
  check_parity(two, convert(two, example), random_images({40, 8, 8, 1}, 9));
  two.find("conv").slots().output = nullptr;
  QUANTRAIN_CHECK_ERROR(
      convert(two, example),
      GraphError,
      "[conv] its output has two consumers and would need a range for each: put one FakeQuantize");
}

TEST_CASE("a reshape may stand between a layer and its range or its activation",
          "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  const Tensor images = random_images({40, 8, 8, 1}, 9);
  for (const bool activation : {false, true}) {
    LateRange late(activation);
    prepare_qat(late, example, QConfig::int8());
    late(example);
    late.find(activation ? "relu" : "conv").slots().output = nullptr;
    const IntegerModel model = convert(late, example);
    check_parity(late, model, images);
    // The reshape and, if `activation` is set, the ReLU are fused with the convolution.
    CHECK(model.program().steps.size() == 1);
    CHECK(test::last_output(model).shape == Shape{72});
    CHECK(test::last_output(model).name == "conv");
  }
}

TEST_CASE("layers between reshapes fuse and stay equal", "[quant][convert]") {
  const bool in_the_middle = GENERATE(false, true);
  CAPTURE(in_the_middle);
  const Tensor example = random_images({2, 32}, 1);
  Reshaped net(in_the_middle);
  prepare_qat(net, example, QConfig::bits(4, 5));
  train_a_little(net, {6, 32}, 3);
  const IntegerModel model = convert(net, example);
  check_parity(net, model, random_images({40, 32}, 9));
  const Plan rows = plan(net, example);
  const auto conv = std::find_if(
      rows.rows.begin(), rows.rows.end(), [](const PlanRow& row) { return row.name == "conv"; });
  REQUIRE(conv != rows.rows.end());
  CHECK(conv->folded == (in_the_middle ? "reshape, relu" : "relu"));
  int64_t products = 0;
  int64_t views = 0;
  for (const integer::Step& step : model.program().steps) {
    products += integer::product(step.operation) != nullptr;
    views += std::holds_alternative<integer::View>(step.operation);
  }
  CHECK(products == 2);
  CHECK(views == 2);
  CHECK(model.program().steps.size() == 4);
}

TEST_CASE("Sigmoid and Tanh convert to lookups", "[quant][convert]") {
  const int bits = GENERATE(8, 4, 2);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{Conv2d{1, 2, {.kernel = 3}},
                 Sigmoid{},
                 MaxPool2d{2},
                 Tanh{},
                 Flatten{},
                 Linear{18, 4},
                 Tanh{}};
  QConfig config = QConfig::bits(bits, bits);
  config.types["Sigmoid"] = QConfig::bits(8, 6).model;
  config.layers["3"] = config.model;
  config.layers["3"].activation.is_signed = true;
  prepare_qat(net, example, config);
  CHECK(plan(net, example).convertible());
  train_a_little(net, {6, 8, 8, 1}, 4);
  const IntegerModel model = convert(net, example);
  check_parity(net, model, random_images({70, 8, 8, 1}, 9));
  const Plan rows = plan(net, example);
  REQUIRE(rows.rows.size() == 7);
  CHECK(rows.rows[1].name == "1");
  CHECK(rows.rows[1].operation == "sigmoid");
  CHECK(rows.rows[1].kernel == "lookup_u8");
  CHECK(rows.rows[1].output_bits == 6);
  CHECK(rows.rows[3].operation == "tanh");
  CHECK(rows.rows[3].output_bits == bits);
  CHECK(rows.rows[6].output_bits == 8);  // an output layer without weights gives 8-bit codes
  CHECK(net(example).kind() == ValueKind::kCodes);
}

TEST_CASE("a function called in a module's own forward() has no place for its range",
          "[quant][convert]") {
  class Gate : public Module {
   public:
    explicit Gate(Tensor (*function)(const Tensor&))
        : function_(function), conv_(add("conv", Conv2d{1, 2, {.kernel = 3}})) {}
    std::string_view type() const override { return "Gate"; }

   protected:
    Tensor forward(const Tensor& x) override { return function_((*conv_)(x)); }

   private:
    Tensor (*function_)(const Tensor&);
    std::shared_ptr<Conv2d> conv_;
  };
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Gate gate(sigmoid);
  QUANTRAIN_CHECK_ERROR(prepare_qat(gate, example, QConfig::int8()),
                        GraphError,
                        "operation sigmoid of [2, 6, 6, 2] in its forward() has no place for a "
                        "FakeQuantize: use the layer Sigmoid");
  Gate squares([](const Tensor& x) {
    return elementwise(std::make_shared<const ElementwiseFunction>(
                           ElementwiseFunction{.type = "square",
                                               .f = [](double v) { return v * v; },
                                               .derivative = [](double v) { return 2.0 * v; }}),
                       x);
  });
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(squares, example, QConfig::int8()),
      GraphError,
      "operation square of [2, 6, 6, 2] in its forward() has no place for a FakeQuantize: run it "
      "in a layer of its own");
}

TEST_CASE("each operation of the float simulation is within a bound of the integer simulation",
          "[quant][convert][simulation]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  freeze(net);
  const Tensor images = random_images({8, 8, 8, 1}, 9);
  const Graph integers = record_graph(net, images);
  set_simulation(net, Simulation::kFloat);
  const Graph floats = record_graph(net, images);
  CHECK(floats.outputs()[0].kind() == ValueKind::kFloat);
  REQUIRE(floats.nodes().size() == integers.nodes().size());
  for (const GraphNode& node : integers.nodes()) {
    const GraphNode& other = floats.node(node.index);
    INFO(node.type() << ' ' << node.scope());
    double bound = largest_difference(node.inputs[0], other.inputs[0]);
    if (node.type() == "conv2d" || node.type() == "linear") {
      bound = product_bound(node, bound);
    } else if (node.type() == "fake_quantize") {
      // The codes may differ by one. The factor 1.001 makes room for float32 roundings.
      bound += 1.001 * largest(node.output.codes()->params.scale);
    }
    CHECK(largest_difference(node.output, other.output) <= bound);
  }
}

TEST_CASE("a network with exploded weights is refused, with the layer's name", "[quant][convert]") {
  const Tensor example = random_images({2, 12}, 1);
  const auto died = [&](size_t parameter, float factor) {
    Sequential net = mlp();
    prepare_ptq(net, example, QConfig::int8());
    calibrate(net, random_images({20, 12}, 2));
    Tensor tensor = net.parameters()[parameter];
    float* const values = tensor.mutable_data();
    for (int64_t i = 0; i < tensor.elements(); ++i) values[i] *= factor;
    return net;
  };
  Sequential exploded = died(0, 1e14f);
  QUANTRAIN_CHECK_ERROR(convert(exploded, example), QuantError, "[1] [requantize] multiplier ");
  QUANTRAIN_CHECK_ERROR(exploded(example), QuantError, "[1] [requantize] multiplier ");
}

}  // namespace quantrain::quant
