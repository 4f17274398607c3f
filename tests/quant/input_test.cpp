#include "quant/prepare/input_quantize.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

#include "framework/autograd/ops.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/data/features.hpp"
#include "framework/data/loader.hpp"
#include "framework/optim/adam.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/state.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_parity;

/// How raw values are declared. They are rows [n, 12] or images [n, 8, 8, 1].
struct Declared {
  std::string name;
  Range range;
  bool features = false;  ///< raw values of column f are scaled by 10^(f - 6) and shifted

  InputFeatures input_features() const {
    InputFeatures result;
    for (int f = 0; features && f < 12; ++f) {
      result.scale.push_back(static_cast<float>(std::pow(10.0, f - 6)));
      result.offset.push_back(static_cast<float>(f % 3 - 1) * 20.0f * result.scale.back());
    }
    return result;
  }
};

const std::vector<Declared> kDeclared{{"pixels", {0.0f, 1.0f}},
                                      {"symmetric", {-4.0f, 4.0f}},
                                      {"asymmetric", {-1.0f, 3.0f}},
                                      {"far from 0", {10.0f, 11.0f}},
                                      {"per feature", {-3.0f, 3.0f}, true}};

std::vector<float> raw_values(const Declared& declared, int64_t count, uint64_t seed) {
  const InputFeatures features = declared.input_features();
  Random random(seed);
  std::vector<float> raw;
  for (int64_t i = 0; i < count; ++i) {
    const float z = random.uniform(0.999f * declared.range.min + 0.001f * declared.range.max,
                                   declared.range.max);
    const auto f = static_cast<size_t>(i % 12);
    raw.push_back(declared.features
                      ? integer::raw_value(0.99f * z, features.offset[f], features.scale[f])
                      : z);
  }
  return raw;
}

Dataset dataset(const Declared& declared, const Shape& shape, const std::vector<float>& raw) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < shape[0]; ++i) labels.push_back(static_cast<int32_t>(i % 4));
  return Dataset::from_floats(shape, raw, labels, 4, declared.range, declared.input_features());
}

Dataset rows(const Declared& declared, int64_t n = 60, uint64_t seed = 1) {
  return dataset(declared, {n, 12}, raw_values(declared, n * 12, seed));
}

Sequential three_layers() {
  return Sequential{Linear{12, 9}, ReLU{}, Linear{9, 7}, ReLU{}, Linear{7, 4}};
}

void train_coded(Module& net, const Dataset& data) {
  net.train();
  Adam optimizer(net.parameters(), {.learning_rate = 1e-2f});
  for (const Batch& batch : DataLoader(data, {.batch = 20, .shuffle = true})) {
    Tensor loss = cross_entropy(net(batch.input), batch.labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
}

QConfig mixed_bits(const std::vector<std::string>& layers) {
  QConfig config = QConfig::int8();
  config.layers[layers[1]] = QConfig::int4().model;
  config.layers[layers[2]] = QConfig::int2().model;
  return config;
}

/// Checks that the integers from bytes, from raw floats and from the simulation are equal.
void check_ways_in(Module& net, const Dataset& data, const std::vector<float>& raw) {
  const Batch batch = data.batch(0, data.size());
  const IntegerModel model = convert(net, batch.input);
  const auto outputs = static_cast<size_t>(batch.size() * model.output_size());
  std::vector<int32_t> from_bytes(outputs);
  std::vector<int32_t> from_floats(outputs);
  std::vector<float> logits(outputs);
  model.run_codes(batch.bytes(), from_bytes);
  model.run(std::span<const float>(raw), from_floats);
  model.run_codes(batch.bytes(), logits);
  CHECK(from_bytes == from_floats);
  CHECK(std::set<int32_t>(from_bytes.begin(), from_bytes.end()).size() > 4);  // not saturated
  std::vector<uint8_t> codes(raw.size());
  CHECK(model.quantize_input(raw, codes) == 0);
  CHECK(std::equal(codes.begin(), codes.end(), batch.bytes().begin(), batch.bytes().end()));
  {
    const DeployedMode deployed(net);
    CHECK(values(net(batch.input)) == logits);
  }
  check_parity(net, model, batch.input);
  const Parity parity = verify_parity(net, model, DataLoader(data, {.batch = 17}));
  CHECK(parity.codes_from_floats == static_cast<int64_t>(raw.size()));
  CHECK(parity.codes_from_floats_different == 0);
  CHECK(parity.first_difference().empty());

  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.program() == model.program());
  CHECK(loaded.hash() == model.hash());
  CHECK(loaded.input_features() == data.features());
  std::vector<int32_t> again(outputs);
  loaded.run(std::span<const float>(raw), again);
  CHECK(again == from_bytes);
}

/// y = fc(a(x0) + b(x1)).
class TwoInputs : public Module {
 public:
  TwoInputs()
      : a_(add("a", Linear{12, 5})),
        b_(add("b", Linear{3, 5})),
        sum_(add("sum", Add{})),
        fc_(add("fc", Linear{5, 4})) {}
  std::string_view type() const override { return "TwoInputs"; }

 protected:
  Tensor forward(const Tensor& x, const Tensor& y) override {
    return (*fc_)((*sum_)((*a_)(x), (*b_)(y)));
  }

 private:
  std::shared_ptr<Linear> a_, b_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<Linear> fc_;
};

InputQuantize& input_of(Module& net, size_t i = 0) { return *Plugged(net).inputs.at(i); }

}  // namespace

TEST_CASE("integers from bytes, floats and simulation are equal, however the data are declared",
          "[quant][input]") {
  for (const Declared& declared : kDeclared) {
    CAPTURE(declared.name);
    const std::vector<float> raw = raw_values(declared, 60 * 12, 1);
    const Dataset data = dataset(declared, {60, 12}, raw);
    const auto check_qat = [&](const QConfig& config) {
      Sequential net = three_layers();
      prepare_qat(net, data.batch(0, 2).input, config);
      train_coded(net, data);
      check_ways_in(net, data, raw);
    };
    check_qat(mixed_bits({"0", "2", "4"}));
    QConfig config = QConfig::int8();
    config.model.activation.is_signed = true;
    check_qat(config);
    config = QConfig::int8();
    config.model.weight.estimator = config.model.activation.estimator = Estimator::kLearned;
    check_qat(config);
    Sequential net = three_layers();
    train_coded(net, data);
    prepare_ptq(net, data.batch(0, 2).input, QConfig::int8());
    calibrate(net, DataLoader(data));
    check_ways_in(net, data, raw);
  }
}

TEST_CASE("convolutions give equal integers for images of any range, as bytes and as floats",
          "[quant][input]") {
  for (const Declared& declared : kDeclared) {
    if (declared.features) continue;
    CAPTURE(declared.name);
    const std::vector<float> raw = raw_values(declared, 30 * 64, 1);
    const Dataset data = dataset(declared, {30, 8, 8, 1}, raw);
    Sequential net = test::conv_net();
    prepare_qat(net, data.batch(0, 2).input, mixed_bits({"0", "4", "9"}));
    train_coded(net, data);
    check_ways_in(net, data, raw);
  }
}

TEST_CASE("each input has the range of its example", "[quant][input]") {
  const Dataset a = rows(kDeclared[4]);
  const Dataset b = Dataset::from_floats(
      {60, 3}, std::vector<float>(180, -1.5f), std::vector<int32_t>(60), 4, {-2.0f, 0.5f});
  TwoInputs net;
  const std::vector<Tensor> batch{a.batch(0, 60).input, b.batch(0, 60).input};
  prepare_qat(net, batch, QConfig::int8());
  CHECK(input_of(net, 0).features() != nullptr);
  CHECK(input_of(net, 1).features() == nullptr);
  CHECK_FALSE(input_of(net, 0).params() == input_of(net, 1).params());
  net(batch);
  const IntegerModel model = convert(net, batch);
  CHECK(model.input_params(0) == input_of(net, 0).params());
  CHECK(model.input_features(0) == a.features());
  CHECK(model.input_params(1) == input_of(net, 1).params());
  CHECK(model.input_features(1).empty());
  check_parity(net, model, batch);
  const std::vector<Tensor> swapped{batch[0], rows(kDeclared[0]).batch(0, 60).input};
  QUANTRAIN_CHECK_ERROR(net(swapped), QuantError, "[input1] the codes of this input mean [0, 1]");
}

TEST_CASE("prepare takes the input's range from the example, or says what is missing",
          "[quant][input]") {
  const Tensor batch = rows(kDeclared[1]).batch(0, 2).input;
  const Tensor floats = Tensor::full({2, 12}, 2.0f);
  QConfig config = QConfig::int8();
  const auto refuses = [&](const Tensor& example, auto* error, const char* text) {
    using E = std::remove_pointer_t<decltype(error)>;
    Sequential net = three_layers();
    QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, config), E, text);
    QUANTRAIN_CHECK_ERROR(prepare_ptq(net, example, config), E, text);
    CHECK(Plugged(net).empty());
  };
  QuantError* const quant = nullptr;
  DataError* const data = nullptr;
  refuses(floats,
          quant,
          "[input] the range of these floats is unknown: pass the input of a Dataset's or "
          "DataLoader's batch, which carries its range, or set QConfig::input_range");
  Tensor written = batch.detach();
  config.input_range = {0.0f, 1.0f};
  refuses(batch, quant, "[input] the example's codes mean [-3.98431, 4.01569] (u8 scale 0.0313726");
  refuses(batch,
          quant,
          "QConfig::input_range says [0, 1]; the data declare the range: leave input_range out");
  refuses(floats, data, "the example's values reach from 2 to 2, outside of QConfig::input_range");
  config.input_range = {1.0f, 1.0f};
  refuses(floats, quant, "[QConfig.input_range] the range [1, 1] of the input is empty");
  // input_range may repeat the range that the data declare.
  config.input_range = {-4.0f, 4.0f};
  for (const Tensor& example : {batch, floats}) {
    Sequential net = three_layers();
    prepare_qat(net, example, config);
    CHECK(input_of(net).params() == batch.source_codes()->params);
  }
  // Images that were written to are plain floats.
  config.input_range.reset();
  written.mutable_data()[0] = 0.0f;
  refuses(written, quant, "the range of these floats is unknown");
  // Codes of an activation are not codes of an input.
  const Tensor four = fake_quantize(Tensor::zeros({2, 12}), {{.bits = 4}, -1, {0.1f}, {0}});
  refuses(four, quant, "an input has unsigned codes of 8 bits, got u4");
}

TEST_CASE("data of another range or other features are refused by network, convert and parity",
          "[quant][input]") {
  const Dataset data = rows(kDeclared[4]);
  Sequential net = three_layers();
  prepare_qat(net, data.batch(0, 2).input, QConfig::int8());
  train_coded(net, data);
  const IntegerModel model = convert(net, data.batch(0, 2).input);
  const auto refused = [&](const Tensor& images, const char* text) {
    QUANTRAIN_CHECK_ERROR(net(images), QuantError, text);
    QUANTRAIN_CHECK_ERROR(convert(net, images), QuantError, text);
    QUANTRAIN_CHECK_ERROR(plan(net, images), QuantError, text);
    QUANTRAIN_CHECK_ERROR(verify_parity(net, model, images), QuantError, text);
  };
  refused(rows(kDeclared[1]).batch(0, 4).input,
          "[input] the codes of this input mean [-3.98431, 4.01569] (u8 scale 0.0313726 zero point "
          "127), no "
          "features, but the network was prepared for [-3");
  Declared other = kDeclared[4];
  InputFeatures features = other.input_features();
  features.offset[7] += 1.0f;
  const Dataset moved = Dataset::from_floats(
      {1, 12}, features.offset, std::vector<int32_t>{0}, 4, other.range, features);
  refused(moved.batch(0, 1).input, "12 features, index 7 with offset");
  InputFeatures near = other.input_features();
  near.scale[7] = std::nextafter(near.scale[7], 2.0f * near.scale[7]);
  const QParams params = integer::input_params(other.range, "test");
  const InputFeatures own = other.input_features();
  const auto [ours, theirs] = describe_inputs(params, &own, params, &near);
  CHECK(ours != theirs);
  CHECK_THAT(ours, quantrain::test::ContainsSubstring("index 7 with offset"));
  refused(Tensor::zeros({4, 12}),
          "the input is floats without codes, but the network was prepared for [");
  refused(Tensor::zeros({4, 12}), "encode raw values with the data set that declares the features");

  // An equal network that was prepared for other data.
  Sequential narrow = three_layers();
  prepare_qat(narrow, rows(kDeclared[1]).batch(0, 2).input, QConfig::int8());
  narrow(rows(kDeclared[1]).batch(0, 2).input);
  const Tensor images = rows(kDeclared[1]).batch(0, 4).input;
  QUANTRAIN_CHECK_ERROR(verify_parity(narrow, model, images), QuantError, "[input] the network's");
  QUANTRAIN_CHECK_ERROR(verify_parity(narrow, model, Tensor::from({4, 12}, test::span_of(images))),
                        QuantError,
                        "convert the network again");
}

TEST_CASE("parity counts codes that raw values cannot represent", "[quant][input][parity]") {
  // float32 has steps of 8 at 10^8, but the codes of z have steps of 1.
  InputFeatures features;
  features.offset.assign(12, 1e8f);
  features.scale.assign(12, 1.0f);
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(24);
  for (int64_t i = 0; i < 24; ++i) codes->bytes[i] = static_cast<uint8_t>(i);
  codes->params = integer::input_params({0.0f, 255.0f}, "test");
  codes->features = std::make_shared<const InputFeatures>(features);
  const Tensor images = Tensor::decoded({2, 12}, codes);
  Sequential net = three_layers();
  prepare_qat(net, images, QConfig::int8());
  net(images);
  const Parity parity = verify_parity(net, convert(net, images), images);
  CHECK(parity.codes_from_floats == 24);
  CHECK(parity.codes_from_floats_different == 21);  // all but 0, 8 and 16
  CHECK(parity.codes_different() == 0);
  CHECK(parity.first_difference() == "raw values");
  std::ostringstream text;
  text << parity;
  CHECK_THAT(text.str(),
             quantrain::test::ContainsSubstring("inputs from raw values: 21 of 24 codes differ"));
  Parity twice = parity;
  twice.add(parity);
  CHECK(twice.codes_from_floats_different == 42);
}

TEST_CASE("the input slot passes codes on, quantizes floats, and counts values that saturate",
          "[quant][input]") {
  const QParams params = integer::input_params({-4.0f, 4.0f}, "test");
  InputQuantize slot(params);
  const Tensor images = rows(kDeclared[1]).batch(0, 3).input;
  const Tensor passed = slot(images);
  CHECK(passed.codes() == images.source_codes());
  CHECK(slot(passed).codes() == passed.codes());
  CHECK(slot.saturated() == 0);
  const Tensor floats = Tensor::from({3, 12}, test::span_of(images));
  const Tensor quantized = slot(floats);
  CHECK(values(quantized) == values(passed));
  CHECK(std::equal(quantized.codes()->bytes.begin(),
                   quantized.codes()->bytes.end(),
                   passed.codes()->bytes.begin()));

  // Codes 0 and 255 mean -3.984 and 4.0157; values up to half a step beyond round to them.
  const Tensor far = Tensor::from({4}, std::vector<float>{-4.2f, 4.03f, 4.04f, 1e30f});
  QUANTRAIN_CHECK_ERROR(
      slot(far),
      DataError,
      "[input] 3 of 4 values lie outside of [-3.98431, 4.01569], what the codes of "
      "the network's input mean");
  CHECK(slot.saturated() == 0);
  slot.set_outside(Outside::kSaturate);
  CHECK(slot(far).codes()->bytes[0] == 0);
  CHECK(slot.saturated() == 3);
  slot(far);
  CHECK(slot.saturated() == 6);
  {
    const DryRun dry_run;
    slot(far);
  }
  CHECK(slot.saturated() == 6);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  QUANTRAIN_CHECK_ERROR(slot(Tensor::full({1}, nan)), DataError, "[input] the input has a NaN");

  slot.set_simulation(Simulation::kFloat);
  CHECK(slot(images).kind() == ValueKind::kFloat);
  CHECK(slot(images).source_codes() == nullptr);
  CHECK(values(slot(images)) == values(passed));

  Sequential net{InputQuantize{slot.params()}};
  set_outside(net, Outside::kSaturate);
  {
    const FloatMode floats_pass(net);
    CHECK(net(images).same_as(images));
    CHECK(net(far).same_as(far));
  }
  {
    const Calibration calibration(net);
    CHECK(net(images).same_as(images));
    CHECK(net(floats).same_as(floats));
    QUANTRAIN_CHECK_ERROR(net(far), DataError, "prepare the network for a range that holds them");
  }
  CHECK_NOTHROW(net(far));
}

TEST_CASE("a prepared network does not dequantize the codes of its input", "[quant][input]") {
  constexpr int64_t kRows = 64;
  constexpr int64_t kRow = int64_t{1} << 14;
  const Dataset data(
      {kRows, kRow}, std::vector<uint8_t>(kRows * kRow, 1), std::vector<int32_t>(kRows), 2);
  const Batch batch = data.batch(0, kRows);
  Sequential net{Linear{kRow, 2}};
  prepare_qat(net, data.batch(0, 1).input, QConfig::int8());
  mean(net(batch.input)).backward();
  const int64_t before = pool::counters().bytes_in_use;
  batch.input.data();
  CHECK(pool::counters().bytes_in_use - before >= kRows * kRow * int64_t{sizeof(float)});
}

TEST_CASE("values that saturate are counted in all threads", "[quant][input]") {
  constexpr int64_t kPasses = 20000;
  InputQuantize slot(integer::input_params({-4.0f, 4.0f}, "test"));
  slot.set_outside(Outside::kSaturate);
  const Tensor far = Tensor::from({4}, std::vector<float>{-4.2f, 4.03f, 4.04f, 1e30f});
  const auto run = [&] {
    const NoGrad no_grad;
    for (int64_t i = 0; i < kPasses; ++i) slot(far);
  };
  std::thread other(run);
  run();
  other.join();
  CHECK(slot.saturated() == 2 * kPasses * 3);
}

TEST_CASE("values that saturate are an error during calibration; afterwards, most of them must fit",
          "[quant][input]") {
  Sequential net = three_layers();
  QConfig config = QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  prepare_ptq(net, Tensor::full({1, 12}, 1.0f), config);
  calibrate(net, Tensor::full({1, 12}, 0.5f));
  QUANTRAIN_CHECK_ERROR(calibrate(net, Tensor::full({1, 12}, 1.5f)), DataError, "12 of 12 values");
  QUANTRAIN_CHECK_ERROR(
      net(Tensor::full({1, 12}, 1.5f)),
      DataError,
      "12 of 12 values lie outside of [0, 1], what the codes of the network's input");
  QUANTRAIN_CHECK_ERROR(net(Tensor::full({1, 12}, 255.0f)), DataError, "quant::set_outside(net");
  Tensor rows = Tensor::full({8, 12}, 0.5f);
  for (int64_t i = 0; i < 8; ++i) rows.mutable_data()[12 * i + 7] = 40.0f;
  QUANTRAIN_CHECK_ERROR(net(rows), DataError, "8 of 8 values of column 7 lie outside of [0, 1]");
  set_outside(net, Outside::kSaturate);
  CHECK_NOTHROW(net(rows));
  CHECK(input_of(net).saturated() == 8);
  CHECK_NOTHROW(net(Tensor::full({1, 12}, 1.5f)));
  CHECK(input_of(net).saturated() == 8 + 12);
  const IntegerModel model = convert(net, Tensor::full({1, 12}, 0.5f));
  std::vector<uint8_t> codes(12);
  CHECK(model.quantize_input(std::vector<float>(12, 1.5f), codes) == 12);
}

TEST_CASE("the gradient reaches floats inside the range, and all elements of a tensor with codes",
          "[quant][input]") {
  InputQuantize slot(integer::input_params({0.0f, 1.0f}, "test"));
  Tensor floats = Tensor::from({4}, std::vector<float>{-0.5f, 0.25f, 1.0f, 1.5f});
  floats.set_requires_grad(true);
  sum(mul(slot(floats), Tensor::full({4}, 3.0f))).backward();
  CHECK(values(floats.grad()) == std::vector<float>{0.0f, 3.0f, 3.0f, 0.0f});
  Tensor images = test::random_images({1, 4}, 1);
  images.set_requires_grad(true);
  sum(mul(slot(images), Tensor::full({1, 4}, 3.0f))).backward();
  CHECK(values(images.grad()) == std::vector<float>(4, 3.0f));
}

TEST_CASE("the state of a network for other data is refused, and nothing changes",
          "[quant][input]") {
  const quantrain::test::TemporaryFolder folder;
  const auto prepared = [](const Declared& declared) {
    Sequential net = three_layers();
    prepare_qat(net, rows(declared).batch(0, 2).input, QConfig::int8());
    train_coded(net, rows(declared));
    return net;
  };
  Sequential net = prepared(kDeclared[0]);
  save(net, folder / "pixels");
  Sequential same = prepared(kDeclared[0]);
  load(same, folder / "pixels");
  CHECK(values(same.parameters()[0]) == values(net.parameters()[0]));
  copy_state(net, same);

  Sequential other = prepared(kDeclared[1]);
  const std::vector<float> before = values(other.parameters()[0]);
  QUANTRAIN_CHECK_ERROR(load(other, folder / "pixels"),
                        DataError,
                        "\"input_slot.scale\" has 0.00392157 at 0, but this network was made with "
                        "0.0313726");
  QUANTRAIN_CHECK_ERROR(
      copy_state(net, other),
      GraphError,
      "\"input_slot.scale\" differs from the value that the target was made with");
  CHECK(values(other.parameters()[0]) == before);
  Sequential features = prepared({"pixels with features", {0.0f, 1.0f}, true});
  QUANTRAIN_CHECK_ERROR(
      load(features, folder / "pixels"), DataError, "lacks \"input_slot.feature_offset\"");
}

TEST_CASE("an input slot refuses parameters that no input can have", "[quant][input]") {
  QUANTRAIN_CHECK_ERROR(InputQuantize({{.bits = 4}, -1, {0.1f}, {0}}), QuantError, "8 bits");
  QUANTRAIN_CHECK_ERROR(
      InputQuantize({{.bits = 8, .is_signed = true}, -1, {0.1f}, {0}}), QuantError, "unsigned");
  QUANTRAIN_CHECK_ERROR(InputQuantize({{.bits = 8}, -1, {0.0f}, {0}}), QuantError, "[input]");
  const auto zero = std::make_shared<const InputFeatures>(InputFeatures{{0.0f}, {0.0f}});
  QUANTRAIN_CHECK_ERROR(InputQuantize({{.bits = 8}, -1, {0.1f}, {0}}, zero),
                        QuantError,
                        "feature 0 has offset 0 and scale 0");
}

}  // namespace quantrain::quant
