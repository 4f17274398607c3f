#include "quant/lowering/convert.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <thread>

#include "framework/autograd/ops.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/training/switches.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using test::branched_net;
using test::conv_net;
using test::mlp;
using test::random_images;
using test::train_a_little;

void check_parity(Module& net, const IntegerModel& model, const Tensor& images) {
  const Parity parity = verify_parity(net, model, images);
  INFO("first difference: " << parity.first_difference());
  CHECK(parity.images == images.dim(0));
  CHECK(parity.codes_equal() == 1.0);
  CHECK(parity.logits_equal() == 1.0);
  CHECK(parity.top1_disagreements == 0);
  CHECK(parity.layers.size() == model.layers().size() + 1);
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

TEST_CASE("PTQ is QAT with zero training steps", "[quant][convert]") {
  Sequential net = conv_net();
  train_a_little(net, {8, 8, 8, 1}, 5);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  net.eval();
  const Tensor images = random_images({40, 8, 8, 1}, 5);
  const Floats before = net(images).floats();
  prepare_ptq(net, example, QConfig::int8());
  {
    const NoGrad no_grad;
    const Tensor float_logits = net(images);
    // Calibration passes real values: the batch norm alone may round differently once its slot
    // runs.
    for (int64_t i = 0; i < float_logits.elements(); ++i) {
      CHECK(float_logits.floats().data()[i] ==
            quantrain::test::Approx(before.data()[i]).margin(1e-5));
    }
  }
  const IntegerModel model = convert(net, example);
  check_parity(net, model, images);
  std::vector<float> logits(static_cast<size_t>(40 * model.outputs()));
  model.run(40, images.data(), logits.data());
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(logits[i] - before.data()[i])));
    size = std::max(size, std::abs(static_cast<double>(before.data()[i])));
  }
  CHECK(error < 0.05 * size);  // 8 bits: about 1/256 for each of three layers, with room
}

TEST_CASE("configurations beyond the default convert and stay equal", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
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
  SECTION("an input range around 0") { config.input_range = {-1.0f, 2.0f}; }
  SECTION("layers of their own bits") {
    config.types["Linear"] = QConfig::bits(3, 6).model;
    config.layers["0"] = QConfig::bits(7, 5).model;
  }
  SECTION("other observers") {
    config.model.activation.observer = {
        .kind = ObserverKind::kPercentile, .low_percentile = 1.0, .high_percentile = 99.0};
  }
  const auto check_with = [&](Sequential net) {
    prepare_qat(net, example, config);
    train_a_little(net, {6, 8, 8, 1}, 3);
    check_parity(net, convert(net, example), random_images({33, 8, 8, 1}, 9));
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
  model.run(5, images.data(), deployed.data());
  for (size_t i = 0; i < deployed.size(); ++i) CHECK(deployed[i] == logits.floats().data()[i]);
}

TEST_CASE("a batch norm's own mode says whether batch statistics count", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  enable_observers(net, false);
  const Tensor images = random_images({5, 8, 8, 1}, 9);
  net.eval();
  const Tensor deployed = net(images);
  SECTION("in evaluation below a network that trains") {
    net.train();
    for (const char* norm : {"1", "5"}) net.find(norm).eval();
    CHECK(quantrain::test::values(net(images)) == quantrain::test::values(deployed));
  }
  SECTION("in training behind a convolution in evaluation") {
    std::vector<std::vector<float>> before;  // a pass in training moves the running statistics
    for (const NamedTensor& entry : net.named_buffers())
      before.push_back(quantrain::test::values(entry.tensor));
    net.train();
    const Tensor training = net(images);
    std::vector<NamedTensor> buffers = net.named_buffers();
    for (size_t i = 0; i < buffers.size(); ++i)
      std::copy(before[i].begin(), before[i].end(), buffers[i].tensor.mutable_data());
    for (const char* conv : {"0", "4"}) net.find(conv).eval();
    CHECK(quantrain::test::values(net(images)) == quantrain::test::values(training));
  }
}

TEST_CASE("a model runs on bytes and on floats, to integers, real logits and classes",
          "[quant][integer_model]") {
  Sequential net = mlp();
  const Tensor example = random_images({2, 12}, 1);
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 12}, 3);
  const IntegerModel model = convert(net, example);
  const int64_t n = 600;  // more than two chunks
  const Tensor images = random_images({n, 12}, 2);
  std::vector<uint8_t> bytes(static_cast<size_t>(images.elements()));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(std::lround(images.data()[i] * 255.0f));
  const auto count = static_cast<size_t>(n * model.outputs());
  std::vector<int32_t> integers(count);
  std::vector<int32_t> from_floats(count);
  std::vector<float> logits(count);
  std::vector<int32_t> classes(static_cast<size_t>(n));
  model.run(n, bytes.data(), integers.data());
  model.run(n, images.data(), from_floats.data());
  model.run(n, bytes.data(), logits.data());
  model.classify(n, bytes.data(), classes.data());
  CHECK(integers == from_floats);
  for (size_t i = 0; i < count; ++i)
    CHECK(logits[i] == static_cast<float>(model.logit_scale() * integers[i]));
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto row = integers.begin() + static_cast<std::ptrdiff_t>(i) * model.outputs();
    CHECK(classes[i] == std::max_element(row, row + model.outputs()) - row);
  }
  model.run(0, bytes.data(), integers.data());
  QUANTRAIN_CHECK_ERROR(model.run(-1, bytes.data(), integers.data()), ShapeError, "negative");
  const Tensor bad = Tensor::full({1, 12}, std::nanf(""));
  QUANTRAIN_CHECK_ERROR(model.run(1, bad.data(), integers.data()), DataError, "NaN");

  SECTION("from several threads at once") {
    std::vector<std::vector<int32_t>> results(4, std::vector<int32_t>(count));
    std::vector<std::thread> threads;
    for (auto& result : results)
      threads.emplace_back([&] { model.run(n, bytes.data(), result.data()); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : results) CHECK(result == integers);
  }
  SECTION("equally on every instruction set") {
    const Isa chosen = chosen_isa();
    for (const Isa isa : usable_isas()) {
      set_isa(isa);
      const IntegerModel again = convert(net, example);
      std::vector<int32_t> result(count);
      again.run(n, bytes.data(), result.data());
      INFO(isa_name(isa));
      CHECK((result == integers));
    }
    set_isa(chosen);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(QUANTRAIN_SANITIZE_ADDRESS)
  SECTION("without taking memory from the system") {
    const int64_t before = pool::counters().system_allocations;
    for (int i = 0; i < 3; ++i) model.run(64, bytes.data(), integers.data());
    const int64_t warm = pool::counters().system_allocations;
    for (int i = 0; i < 10; ++i) model.run(64, bytes.data(), integers.data());
    CHECK(pool::counters().system_allocations == warm);
    CHECK(warm >= before);
  }
#endif
}

TEST_CASE("a saved model is the same model", "[quant][integer_model]") {
  const quantrain::test::TemporaryFolder folder;
  Sequential net = branched_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, QConfig::int4());
  train_a_little(net, {6, 8, 8, 1}, 2);
  const IntegerModel model = convert(net, example);
  const std::string path = folder.path() + "/model.safetensors";
  model.save(path);
  const IntegerModel loaded = IntegerModel::load(path);
  CHECK(loaded.size_bytes() == model.size_bytes());
  CHECK(loaded.logit_scale() == model.logit_scale());
  const Tensor images = random_images({9, 8, 8, 1}, 3);
  std::vector<int32_t> a(static_cast<size_t>(9 * model.outputs()));
  std::vector<int32_t> b(a.size());
  model.run(9, images.data(), a.data());
  loaded.run(9, images.data(), b.data());
  CHECK(a == b);
  check_parity(net, loaded, images);
  QUANTRAIN_CHECK_ERROR(model.save(folder.path() + "/no/such/folder"), DataError, "");
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(folder.path() + "/none"), DataError, "");
}

TEST_CASE("logits that are reshaped keep 8 bits, whatever hidden layers have", "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{Conv2d{1, 3, {.kernel = 3}},
                 ReLU{},
                 Conv2d{3, 4, {.kernel = 1}},
                 GlobalAvgPool2d{},
                 Flatten{}};
  prepare_qat(net, example, QConfig::bits(4, 3));
  train_a_little(net, {6, 8, 8, 1}, 2);
  const IntegerModel model = convert(net, example);
  CHECK(model.layers()[0].layer->output_params().type.bits == 3);
  CHECK(model.layers().back().layer->output_params().type.bits == 8);
  check_parity(net, model, random_images({9, 8, 8, 1}, 9));
}

TEST_CASE("parity refuses a model of another network", "[quant][parity]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential convolutions = conv_net();
  prepare_qat(convolutions, example, QConfig::int8());
  convolutions(example);
  const IntegerModel model = convert(convolutions, example);
  Sequential linear = mlp();
  prepare_qat(linear, random_images({2, 12}, 1), QConfig::int8());
  linear(random_images({2, 12}, 1));
  QUANTRAIN_CHECK_ERROR(verify_parity(linear, model, random_images({3, 12}, 1)),
                        ShapeError,
                        "the model takes samples [8, 8, 1], got [3, 12]");
  Sequential other{Flatten{}, Linear{64, 4}};
  prepare_qat(other, example, QConfig::int8());
  other(example);
  QUANTRAIN_CHECK_ERROR(
      verify_parity(other, model, example), GraphError, "not converted from this network");
  CHECK(other.training());
}

TEST_CASE("a plan says what becomes of each layer and changes nothing", "[quant][plan]") {
  Sequential net = conv_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  QUANTRAIN_CHECK_ERROR(plan(net, example), GraphError, "not prepared");
  prepare_qat(net, example, QConfig::bits(4, 6));
  const Plan dry = plan(net, example);
  CHECK(dry.convertible());
  REQUIRE(dry.rows.size() == 6);
  CHECK(dry.rows[0].name == "0");
  CHECK(dry.rows[0].kernel == "conv2d_u8s8_u8");
  CHECK(dry.rows[0].weight_bits == 4);
  CHECK(dry.rows[0].output_bits == 6);
  CHECK(dry.rows[0].accumulator_bound > 0);
  CHECK(dry.rows[0].folded == "1, 2");
  CHECK(dry.rows[5].output_bits == 32);
  for (const FakeQuantize* activation : Plugged(net).activations) {
    CHECK(activation->is_initialized() ==
          (activation == Plugged(net).activations[0]));  // the input's are given
  }
  std::ostringstream text;
  dry.print(text);
  CHECK(text.str().find("conv2d_u8s8_u8") != std::string::npos);
  QUANTRAIN_CHECK_ERROR(convert(net, example), QuantError, "was not calibrated");
}

namespace {

/// A layer whose forward uses an operation without a layer, or with no integer form.
class Custom : public Module {
 public:
  enum class Kind { kFunctionalRelu, kSigmoid, kTwice, kSharedInput, kTwoRanges };
  explicit Custom(Kind kind)
      : kind_(kind),
        conv_(add("conv", Conv2d{1, 2, {.kernel = 3}})),
        norm_(add("norm", BatchNorm2d{2})),
        sum_(add("sum", Add{})),
        first_(add("first", FakeQuantize{FakeQuantizeConfig::q8()})),
        second_(add("second", FakeQuantize{FakeQuantizeConfig::q4()})) {}
  std::string_view type() const override { return "Custom"; }

 protected:
  Tensor forward(const Tensor& x) override {
    switch (kind_) {
      case Kind::kFunctionalRelu: return quantrain::add((*conv_)(x), (*conv_)(x));
      case Kind::kSigmoid: return sigmoid((*conv_)(x));
      case Kind::kTwice: return (*sum_)((*conv_)(x), (*conv_)(x));
      case Kind::kSharedInput: {
        const Tensor y = (*conv_)(x);
        return (*sum_)((*norm_)(y), y);
      }
      case Kind::kTwoRanges: {
        const Tensor y = (*conv_)(x);
        return (*sum_)((*first_)(y), (*second_)(y));
      }
    }
    return x;
  }

 private:
  Kind kind_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<FakeQuantize> first_;
  std::shared_ptr<FakeQuantize> second_;
};

}  // namespace

TEST_CASE("prepare refuses what it cannot quantize, and plugs nothing in", "[quant][prepare]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  const QConfig config = QConfig::int8();
  const auto refuses = [&](Module& net, const char* text) {
    QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, config), GraphError, text);
    CHECK(Plugged(net).empty());
  };
  Custom functional(Custom::Kind::kFunctionalRelu);
  refuses(functional, "runs twice");
  Custom twice(Custom::Kind::kTwice);
  refuses(twice, "[conv] the layer runs twice");
  Custom shared(Custom::Kind::kSharedInput);
  refuses(shared, "another consumer");
  Sequential lonely{BatchNorm2d{1}, Flatten{}, Linear{64, 3}};
  refuses(lonely, "no convolution is in front");
  Sequential nothing{Flatten{}};
  refuses(nothing, "no layer to quantize");
  Sequential net = conv_net();
  prepare_qat(net, example, config);
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, config), GraphError, "prepared already");
  Sequential wrong = conv_net();
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(wrong, Tensor::zeros({0, 8, 8, 1}), config), ShapeError, "at least one sample");
  QConfig unknown = config;
  unknown.layers["no.such"] = config.model;
  QUANTRAIN_CHECK_ERROR(prepare_qat(wrong, example, unknown), GraphError, "no layer \"no.such\"");
  QConfig type = config;
  type.types["Softmax"] = config.model;
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(wrong, example, type), QuantError, "no layers of type \"Softmax\"");
  QConfig relu = config;
  relu.layers["2"] = config.model;
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(wrong, example, relu), QuantError, "layer \"2\" has nothing to quantize");
  CHECK(Plugged(wrong).empty());
  Sequential long_sum{Linear{33001, 2}};
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(long_sum, random_images({1, 33001}, 1), config), QuantError, "33001");
}

TEST_CASE("convert refuses what has no integer form, by name", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential plain = conv_net();
  QUANTRAIN_CHECK_ERROR(convert(plain, example), GraphError, "not prepared");
  Sequential squashed{Custom{Custom::Kind::kSigmoid}, Flatten{}, Linear{72, 3}};
  prepare_qat(squashed, example, QConfig::int8());
  CHECK_FALSE(plan(squashed, example).convertible());
  squashed(example);
  QUANTRAIN_CHECK_ERROR(convert(squashed, example), GraphError, "sigmoid has no integer form");

  QConfig affine = QConfig::int8();
  affine.model.weight.scheme = QScheme::kAffine;
  Sequential net = conv_net();
  prepare_qat(net, example, affine);
  net(example);
  QUANTRAIN_CHECK_ERROR(
      convert(net, example), QuantError, "[0] affine weights exist in simulation only");

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
  QUANTRAIN_CHECK_ERROR(convert(part, example), QuantError, "[4] the weights are not quantized");

  // One layer cannot give the codes of two ranges; behind a FakeQuantize of its own it can.
  Custom two(Custom::Kind::kTwoRanges);
  prepare_qat(two, example, QConfig::int8());
  two(example);
  check_parity(two, convert(two, example), random_images({40, 8, 8, 1}, 9));
  two.find("conv").slots().output = nullptr;
  QUANTRAIN_CHECK_ERROR(convert(two, example), GraphError, "[conv] its output would need two");
}

TEST_CASE("the float simulation stays near the integer one", "[quant][convert]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  freeze(net);
  net.eval();
  const NoGrad no_grad;
  const Tensor images = random_images({8, 8, 8, 1}, 9);
  const Tensor integers = net(images);
  set_simulation(net, Simulation::kFloat);
  const Tensor floats = net(images);
  CHECK(floats.kind() == ValueKind::kFloat);
  // A code differs by 1 at most where float rounding crosses a tie; each moves a logit by less than
  // a step of the layer in front. 1 % of the largest logit holds with room.
  double largest = 0.0;
  for (int64_t i = 0; i < floats.elements(); ++i)
    largest = std::max(largest, std::abs(double{floats.data()[i]}));
  for (int64_t i = 0; i < floats.elements(); ++i) {
    CHECK(std::abs(double{floats.data()[i]} - double{integers.data()[i]}) < 0.01 * largest);
  }
}

TEST_CASE("a configuration survives its JSON, and bad ones are refused", "[quant][qconfig]") {
  QConfig config = QConfig::bits(4, 6);
  config.types["Linear"] = QConfig::bits(3, 5).model;
  config.layers["block.conv"] = QConfig::int8().model;
  config.model.weight.estimator = Estimator::kLearned;
  config.simulation = Simulation::kFloat;
  config.input_range = {-1.0f, 0.3f};
  CHECK(QConfig::from_json(config.to_json()) == config);
  for (const std::string& name : QConfig::names()) CHECK_NOTHROW(QConfig::named(name));
  QUANTRAIN_CHECK_ERROR(QConfig::named("int9"), QuantError, "known: int8");
  QUANTRAIN_CHECK_ERROR(QConfig::bits(9, 8), QuantError, "weights have 2 to 8 bits, got 9");
  QUANTRAIN_CHECK_ERROR(QConfig::bits(8, 1), QuantError, "activations have 2 to 16 bits, got 1");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json("{"), QuantError, "not JSON");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json("{}"), QuantError, "config.model is missing");
  std::string text = config.to_json();
  text.insert(1, "\"extra\": 1,");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json(text), QuantError, "config.extra is unknown");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config.to_json();
    changed.replace(changed.find(from), from.size(), to);
    return QConfig::from_json(changed);
  };
  for (const char* bits : {"4.5", "true", "4294967300", "\"4\""}) {
    QUANTRAIN_CHECK_ERROR(with("\"bits\": 4", std::string("\"bits\": ") + bits),
                          QuantError,
                          "config.model.weight.bits has the wrong type");
  }
  QUANTRAIN_CHECK_ERROR(
      with("\"k\": 3.0", "\"k\": true"), QuantError, "config.model.activation.observer.k has");
  CHECK(with("\"k\": 3.0", "\"k\": 3") == config);
}

}  // namespace quantrain::quant
