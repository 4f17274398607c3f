#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// A softmax over the channels of each pixel, and one over the classes.
Sequential shares_net() {
  return Sequential{Conv2d{1, 5, {.kernel = 3}},
                    Softmax{},
                    Conv2d{5, 3, {.kernel = 3}},
                    ReLU{},
                    Flatten{},
                    Linear{48, 4},
                    Softmax{}};
}

/// Returns the logits and their softmax.
class LogitsAndShares : public Module {
 public:
  std::string_view type() const override { return "LogitsAndShares"; }

 protected:
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    const Tensor logits = (*linear_)((*hidden_)(x[0]));
    return {logits, (*softmax_)(logits)};
  }

 private:
  std::shared_ptr<Sequential> hidden_ = add("hidden", Sequential{Linear{12, 9}, ReLU{}});
  std::shared_ptr<Linear> linear_ = add("linear", Linear{9, 4});
  std::shared_ptr<Softmax> softmax_ = add("softmax", Softmax{});
};

}  // namespace

TEST_CASE("logits have 8 bits if they are an output beside their softmax", "[quant][softmax]") {
  const std::vector<Tensor> example{random_images({2, 12}, 1)};
  LogitsAndShares net;
  prepare_qat(net, example, QConfig::bits(4, 3));
  net(std::vector{random_images({20, 12}, 2)});
  CHECK(output_quantizer(net, "hidden.1").config().type.bits == 3);
  CHECK(output_quantizer(net, "linear").config().type.bits == 8);
  const IntegerModel model = convert(net, example);
  for (const int output : model.program().outputs)
    CHECK(model.program().value(output).params.value().type.bits == 8);
}

TEST_CASE("a softmax within a network and at its end converts", "[quant][softmax]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = shares_net();
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 8, 8, 1}, 4);
  const Plan rows = plan(net, example);
  CHECK(rows.convertible());
  CHECK(rows.rows[1].kernel == "softmax");
  CHECK(rows.rows[1].output_bits == bits);
  CHECK(rows.rows[rows.rows.size() - 2].output_bits == 8);  // fewer bits could make logits equal
  CHECK(rows.rows.back().output_bits == 8);
  const IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "shares");
  CHECK(IntegerModel::load(folder / "shares").program() == model.program());
}

TEST_CASE("a softmax has the range [0, 1], whatever it has seen", "[quant][softmax]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = shares_net();
  prepare_ptq(net, example, QConfig::int8());
  const auto& slot = dynamic_cast<FakeQuantize&>(*net.find("6").slots().output);
  CHECK(slot.is_given());
  const QParams params = slot.params();
  calibrate(net, {random_images({9, 8, 8, 1}, 2)});
  CHECK(slot.params() == params);
  CHECK(params.scale[0] == 1.0f / 255.0f);
  CHECK(params.zero_point[0] == 0);
  check_parity(net, convert(net, example), random_images({40, 8, 8, 1}, 9));
}

TEST_CASE("a softmax keeps its range with 4 bits and with learned scales", "[quant][softmax]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential four = shares_net();
  prepare_qat(four, example, QConfig::int4());
  const auto params = [](Sequential& net, const char* layer) {
    return dynamic_cast<FakeQuantize&>(*net.find(layer).slots().output).params();
  };
  CHECK(params(four, "1").scale[0] == 1.0f / 15.0f);
  CHECK(params(four, "6").scale[0] == 1.0f / 255.0f);
  train_a_little(four, {6, 8, 8, 1}, 2);
  check_parity(four, convert(four, example), random_images({40, 8, 8, 1}, 9));
  // The output of a softmax has no learned scale.
  Sequential learned = shares_net();
  QConfig config = QConfig::int8();
  config.model.activation.estimator = Estimator::kLearned;
  prepare_qat(learned, example, config);
  for (const NamedState& parameter : learned.named_parameters())
    CHECK(parameter.name.find("1.output_slot") == std::string::npos);
  QUANTRAIN_CHECK_ERROR(dynamic_cast<FakeQuantize&>(*learned.find("1").slots().output)
                            .update_params(params(four, "1")),
                        QuantError,
                        "the parameters follow from the range [0, 1]");
}

TEST_CASE("in exported C, a softmax overwrites its input, as a table lookup does",
          "[quant][softmax][c99]") {
  const QParams x{{.bits = 8}, -1, {0.05f}, {100}};
  const auto function = integer::QuantizedLookup::rescale(60, x, x, Activation::kRelu);
  const auto ram = [&](const integer::Operation& second) {
    integer::Program program;
    program.values.assign(4, {.name = {}, .shape = {60}, .params = x});
    program.inputs = {0};
    program.outputs = {3};
    program.steps = {{function, {0}, 1}, {second, {1}, 2}, {function, {2}, 3}};
    return ram_bytes(program);
  };
  CHECK(ram(integer::QuantizedSoftmax::make(4, 15, x, x, Activation::kNone)) == ram(function));
}

TEST_CASE("a softmax along the batch has no integer form", "[quant][softmax]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{Conv2d{1, 2, {.kernel = 3}}, Mean{{1, 2, 3}}, Softmax{}};
  QUANTRAIN_CHECK_ERROR(
      prepare_qat(net, example, QConfig::int8()), GraphError, "it takes [N, ..., C], got [2]");
}

TEST_CASE("the gradient of a softmax of codes is that of their real values", "[quant][softmax]") {
  const QParams params{{.bits = 8}, -1, {0.05f}, {100}};
  const Tensor weights = test::random_normal({3, 4, 5, 7}, 8);
  const auto gradient = [&](bool codes) {
    Tensor leaf = test::random_normal({3, 4, 5, 7}, 3, 2.0f).set_requires_grad(true);
    const Tensor q = fake_quantize(leaf, params);
    const Tensor y = softmax(codes ? q : q * 1.0f);
    CHECK((y.kind() == ValueKind::kWaiting) == codes);
    sum(fake_quantize(y, {{.bits = 8}, -1, {1.0f / 255.0f}, {0}}) * weights).backward();
    return values(leaf.grad());
  };
  const std::vector<float> of_codes = gradient(true);
  const std::vector<float> of_floats = gradient(false);
  for (size_t i = 0; i < of_codes.size(); ++i)
    CHECK(of_codes[i] == quantrain::test::Approx(of_floats[i]).margin(1e-6));
}

TEST_CASE("softmax takes empty batches and rows of one element", "[quant][softmax]") {
  const QParams params{{.bits = 8}, -1, {0.05f}, {100}};
  CHECK(softmax(fake_quantize(Tensor::zeros({0, 3}), params)).shape() == Shape{0, 3});
  CHECK(values(softmax(fake_quantize(Tensor::zeros({2, 1}), params))) ==
        std::vector<float>{1.0f, 1.0f});
  CHECK(values(softmax(fake_quantize(Tensor::zeros({4}), params))) == std::vector<float>(4, 0.25f));
}

}  // namespace quantrain::quant
