#include <algorithm>
#include <string>

#include "framework/core/error.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "quant/analysis/sensitivity.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// ReLUs that no other layer has fused, with a range and bits of their own or without.
namespace quantrain::quant::test {
namespace {

using quantrain::test::kInfinity;

/// y = x + norm(conv(rectifier(x))). Two layers read x, so the layer before does not fuse the
/// rectifier.
template <class Rectifier>
class PreActivation : public Module {
 public:
  PreActivation(int64_t channels, Rectifier rectifier)
      : rectifier_(add("rectifier", std::move(rectifier))),
        branch_(add("branch",
                    Sequential{Conv2d{channels, channels, {.padding = 1, .bias = false}},
                               BatchNorm2d{channels}})),
        sum_(add("sum", Add{})) {}
  std::string_view type() const override { return "PreActivation"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*sum_)((*branch_)((*rectifier_)(x)), x); }

 private:
  std::shared_ptr<Rectifier> rectifier_;
  std::shared_ptr<Sequential> branch_;
  std::shared_ptr<Add> sum_;
};

template <class MakeRectifier>
Sequential net_with(const MakeRectifier& rectifier) {
  manual_seed(5);
  return Sequential{Conv2d{1, 4, {.padding = 1}},
                    PreActivation{4, rectifier()},
                    PreActivation{4, rectifier()},
                    GlobalAvgPool2d{},
                    Flatten{},
                    Linear{4, 4}};
}

ReLU relu() { return {}; }
ReLU6 relu6() { return {}; }

/// 8 bits, but these for layers of the type.
QConfig config_with(const std::string& type, int bits) {
  QConfig config = QConfig::int8();
  config.types[type] = config.model;
  config.types[type].activation.bits = bits;
  return config;
}

/// Parameters of the value with this name.
QParams params_of(const IntegerModel& model, std::string_view name) {
  const auto& values = model.program().values;
  const auto found = std::find_if(
      values.begin(), values.end(), [&](const integer::Value& v) { return v.name == name; });
  REQUIRE(found != values.end());
  return found->params.value();
}
int bits_of(const IntegerModel& model, std::string_view name) {
  return params_of(model, name).type.bits;
}

int64_t lookups(const IntegerModel& model) {
  const auto& steps = model.program().steps;
  return std::count_if(steps.begin(), steps.end(), [](const integer::Step& step) {
    return std::holds_alternative<integer::QuantizedLookup>(step.operation);
  });
}

template <class MakeRectifier>
void check_trained(const MakeRectifier& rectifier, const QConfig& config, int bits) {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = net_with(rectifier);
  prepare_qat(net, example, config);
  train_a_little(net, {6, 8, 8, 1}, 4);
  const IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  CHECK(lookups(model) == 2);  // one table for activation and change of parameters
  CHECK(bits_of(model, "1.rectifier") == bits);
  CHECK(bits_of(model, "2.rectifier") == bits);
  CHECK(bits_of(model, "1.sum") == 8);
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  CHECK(IntegerModel::load(folder / "model").program() == model.program());
}

}  // namespace

TEST_CASE("a ReLU that is not fused has the bits of its entry in the configuration",
          "[quant][relu][serial]") {
  const int bits = GENERATE(8, 3, 1);
  const Estimator estimator = GENERATE(Estimator::kClamped, Estimator::kLearned);
  CAPTURE(bits, estimator);
  QConfig config = config_with("ReLU", bits);
  config.types["ReLU"].activation.estimator = estimator;
  check_trained(relu, config, bits);
  config = config_with("ReLU6", bits);
  config.types["ReLU6"].activation.estimator = estimator;
  check_trained(relu6, config, bits);
}

TEST_CASE("without an entry, a ReLU that is not fused keeps the codes of its input",
          "[quant][relu][serial]") {
  check_trained(relu, QConfig::int8(), 8);
  const Tensor images = random_images({20, 8, 8, 1}, 1);
  Sequential net = net_with(relu);
  QConfig config = QConfig::int8();
  config.layers["2.rectifier"] = QConfig::int4().model;
  prepare_ptq(net, images, config);
  calibrate(net, images);
  const IntegerModel model = convert(net, images);
  check_parity(net, model, random_images({40, 8, 8, 1}, 9));
  CHECK(bits_of(model, "0") == 8);
  CHECK(params_of(model, "1.rectifier") == params_of(model, "0"));
  CHECK(bits_of(model, "2.rectifier") == 4);
  CHECK(bits_of(model, "1.sum") == 8);
}

TEST_CASE("a ReLU with bits of its own computes what a clamp does", "[quant][relu]") {
  const int bits = GENERATE(8, 4, 1);
  CAPTURE(bits);
  const Tensor images = random_images({20, 8, 8, 1}, 1);
  const auto outputs = [&](auto rectifier, const std::string& type) {
    Sequential net = net_with(rectifier);
    prepare_ptq(net, images, config_with(type, bits));
    calibrate(net, images);
    std::vector<float> logits(20 * 4);
    convert(net, images).run(span_of(images), logits);
    return logits;
  };
  const auto clamp = [] { return Clamp{0.0f, kInfinity}; };
  CHECK(outputs(relu, "ReLU") == outputs(clamp, "Clamp"));
  const auto clamp6 = [] { return Clamp{0.0f, kRelu6Bound}; };
  CHECK(outputs(relu6, "ReLU6") == outputs(clamp6, "Clamp"));
}

TEST_CASE("an entry for ReLUs reaches those that are not fused", "[quant][relu][serial]") {
  // "1" is fused. "3" follows a max pool, and "4" follows "3".
  Sequential net{Conv2d{1, 4, {.padding = 1}},
                 ReLU{},
                 MaxPool2d{2},
                 ReLU{},
                 ReLU6{},
                 Conv2d{4, 4, {.padding = 1}},
                 Flatten{},
                 Linear{64, 4},
                 ReLU{}};
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, config_with("ReLU", 3));
  train_a_little(net, {6, 8, 8, 1}, 3);
  const IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  CHECK(bits_of(model, "0") == 8);
  CHECK(bits_of(model, "3") == 3);
  CHECK(bits_of(model, "4") == 3);  // has no entry, so it keeps the codes of its input
}

TEST_CASE("a ReLU that reads the network's input has bits of its own", "[quant][relu]") {
  Sequential net{ReLU{}, Conv2d{1, 4, {.padding = 1}}, Flatten{}, Linear{256, 4}};
  const Tensor images = random_images({20, 8, 8, 1}, 1);
  prepare_ptq(net, images, config_with("ReLU", 4));
  calibrate(net, images);
  const IntegerModel model = convert(net, images);
  check_parity(net, model, random_images({40, 8, 8, 1}, 9));
  CHECK(bits_of(model, "0") == 4);
}

TEST_CASE("one ReLU can be left out of an entry for its type", "[quant][relu]") {
  Sequential net = net_with(relu);
  const Tensor images = random_images({20, 8, 8, 1}, 1);
  QConfig config = config_with("ReLU", 4);
  config.layers["2.rectifier"].quantize = false;
  prepare_ptq(net, images, config);
  calibrate(net, images);
  const IntegerModel model = convert(net, images);
  check_parity(net, model, random_images({40, 8, 8, 1}, 9));
  CHECK(bits_of(model, "1.rectifier") == 4);
  CHECK(bits_of(model, "2.rectifier") == 8);
}

TEST_CASE("a saved network keeps the entry for its ReLUs", "[quant][relu][network]") {
  Sequential net = net_with(relu);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  prepare_qat(net, example, config_with("ReLU", 3));
  train_a_little(net, {6, 8, 8, 1}, 2);
  const IntegerModel model = convert(net, example);
  const quantrain::test::TemporaryFolder folder;
  save_network(trace(net, example), folder / "net");
  Network loaded = load_network(folder / "net");
  CHECK(convert(loaded, example).program() == model.program());
  Network copied = copy(loaded);
  CHECK(convert(copied, example).program() == model.program());
}

/// Runs a ReLU that another module registered.
class Borrower : public Module {
 public:
  explicit Borrower(std::shared_ptr<ReLU> relu)
      : relu_(std::move(relu)),
        conv_(add("conv", Conv2d{4, 4, {.padding = 1}})),
        sum_(add("sum", Add{})) {}
  std::string_view type() const override { return "Borrower"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*sum_)((*conv_)((*relu_)(x)), x); }

 private:
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<Add> sum_;
};

class Lender : public Module {
 public:
  Lender()
      : conv_(add("conv", Conv2d{1, 4, {.padding = 1}})),
        relu_(add("relu", ReLU{})),
        borrower_(add("borrower", Borrower{relu_})) {}
  std::string_view type() const override { return "Lender"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*borrower_)((*conv_)(x)); }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Borrower> borrower_;
};

TEST_CASE("a ReLU that runs in a layer that does not own it keeps the codes of its input",
          "[quant][relu]") {
  Lender net;
  const Tensor images = random_images({20, 8, 8, 1}, 1);
  prepare_ptq(net, images, QConfig::int8());
  calibrate(net, images);
  check_parity(net, convert(net, images), images);
}

TEST_CASE("the output of a ReLU with an entry is one of the parts whose bits can be chosen",
          "[quant][relu][sensitivity]") {
  const Tensor images = random_images({2, 8, 8, 1}, 1);
  Sequential net = net_with(relu);
  const auto has = [&](const QConfig& config) {
    const std::vector<ChoosablePart> parts = choosable_parts(net, {images}, config);
    return std::any_of(parts.begin(), parts.end(), [](const ChoosablePart& part) {
      return part.layer == "1.rectifier" && part.part == LayerPart::kOutput;
    });
  };
  CHECK(has(config_with("ReLU", 4)));
  CHECK_FALSE(has(QConfig::int8()));
}

TEST_CASE("an entry for a ReLU that is fused is refused", "[quant][relu][errors]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(net, example, config_with("ReLU", 4)),
      QuantError,
      "[QConfig] all layers of type \"ReLU\" are fused with the layers before them: "
      "entries for those, such as \"Conv2d\", apply to both");
  QConfig config = QConfig::int8();
  config.layers["2"] = config.model;
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, config),
                        QuantError,
                        "[QConfig] layer \"2\" is fused with the layer \"0\": the entry for \"0\" "
                        "applies to both");
  QConfig root = QConfig::int8();
  root.layers[""] = root.model;
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(net, example, root), QuantError, "layer \"\" has nothing to quantize");
}

}  // namespace quantrain::quant::test
