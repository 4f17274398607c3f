// Batch norms that cannot be folded, and arithmetic with constants. Both convert to tables.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
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
using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// last(concat(relu(after(norm(y) + y)), x)) with y = conv(x). The sum also reads y, so norm cannot
/// be folded into conv.
class ConstantResidual : public Module {
 public:
  ConstantResidual()
      : conv_(add("conv", Conv2d{3, 3, {.kernel = 3, .padding = 1}})),
        norm_(add("norm", BatchNorm2d{3})),
        sum_(add("sum", Add{})),
        after_(add("after", BatchNorm2d{3})),
        relu_(add("relu", ReLU{})),
        concat_(add("concat", Concat{})),
        last_(add("last", BatchNorm2d{6})) {}
  std::string_view type() const override { return "Residual"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = (*conv_)(x);
    const Tensor sum = (*relu_)((*after_)((*sum_)((*norm_)(y), y)));
    return (*last_)((*concat_)(sum, x));
  }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<BatchNorm2d> after_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<BatchNorm2d> last_;
};

/// Batch norms at the input, after a ReLU, a max pool, a convolution with two readers, a sum, a
/// concatenation, an average and a reshape, and at the end.
Sequential normed_net() {
  return Sequential{BatchNorm2d{1},
                    Conv2d{1, 3, {.kernel = 3, .padding = 1}},
                    ReLU{},
                    BatchNorm2d{3},
                    MaxPool2d{2},
                    BatchNorm2d{3},
                    ConstantResidual{},
                    AvgPool2d{2},
                    BatchNorm2d{6},
                    Flatten{},
                    BatchNorm1d{24},
                    Linear{24, 4},
                    ReLU{},
                    BatchNorm1d{4}};
}
const char* const kNorms[] = {"0", "3", "5", "6.norm", "6.after", "6.last", "8", "10", "13"};

const integer::Step& step_named(const integer::Program& program, std::string_view name) {
  const auto found =
      std::find_if(program.steps.begin(), program.steps.end(), [&](const integer::Step& step) {
        return program.value(step.output).name == name;
      });
  REQUIRE(found != program.steps.end());
  return *found;
}

/// Applies a function to x and to the layer's parameter c.
class Constant : public Module {
 public:
  using Function = std::function<Tensor(const Tensor& x, const Tensor& c)>;
  Constant(Function function, Tensor c)
      : function_(std::move(function)), c_(add_parameter("c", std::move(c))) {}
  std::string_view type() const override { return "Constant"; }

 protected:
  Tensor forward(const Tensor& x) override { return function_(x, c_); }

 private:
  Function function_;
  Tensor c_;
};

}  // namespace

TEST_CASE("a batch norm that cannot be folded converts to a table for each channel",
          "[quant][batch_norm]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = normed_net();
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 8, 8, 1}, 4);
  CHECK(plan(net, example).convertible());
  const IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));

  const integer::Program& program = model.program();
  for (const char* const path : kNorms) {
    INFO(path);
    // Equation (24), channel by channel.
    const auto& norm = dynamic_cast<BatchNorm&>(net.find(path));
    const integer::Step& step = step_named(program, path);
    const auto& lookup = std::get<integer::QuantizedLookup>(step.operation);
    REQUIRE(lookup.channels() == norm.gamma().elements());
    const QParams& x = *program.value(step.inputs[0]).params;
    const QParams& y = *program.value(step.output).params;
    const bool relu = std::string_view(path) == "6.after";
    const auto activation = relu ? Activation::kRelu : Activation::kNone;
    const StoredOutput stored = stored_output(y, activation);
    int64_t wrong = 0;
    for (int64_t c = 0; c < lookup.channels(); ++c) {
      const double factor =
          norm.gamma().data()[c] / std::sqrt(static_cast<double>(norm.running_var().data()[c]) +
                                             static_cast<double>(norm.epsilon()));
      for (const int32_t q : integer::stored_codes(x)) {
        const double real =
            factor * (code_value(q, x) - norm.running_mean().data()[c]) + norm.beta().data()[c];
        wrong +=
            lookup.at(c, q) !=
            quantize(static_cast<float>(real), y.scale[0], stored.zero_point, stored.lo, stored.hi);
      }
    }
    CHECK(wrong == 0);
  }
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  CHECK(IntegerModel::load(folder / "model").program() == program);
}

TEST_CASE("an unfolded batch norm uses the batch's statistics in training, until it is frozen",
          "[quant][batch_norm]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = normed_net();
  prepare_qat(net, example, QConfig::int8());
  CHECK(Plugged(net).batch_norms.size() == std::size(kNorms));
  train_a_little(net, {6, 8, 8, 1}, 2);
  const auto means = [&] {
    std::vector<std::vector<float>> all;
    for (const char* const path : kNorms)
      all.push_back(values(dynamic_cast<BatchNorm&>(net.find(path)).running_mean()));
    return all;
  };
  const auto before = means();
  train_a_little(net, {6, 8, 8, 1}, 1);
  const auto moved = means();
  for (size_t i = 0; i < moved.size(); ++i) CHECK(moved[i] != before[i]);
  freeze(net);
  train_a_little(net, {6, 8, 8, 1}, 1);
  CHECK(means() == moved);
  check_parity(net, convert(net, example), random_images({40, 8, 8, 1}, 9));
  // A frozen network computes the deployed integers in training, too.
  const Tensor images = random_images({5, 8, 8, 1}, 3);
  net.train();
  const std::vector<float> training = values(net(images));
  net.eval();
  CHECK(values(net(images)) == training);
  // Gradients reach the layers before a batch norm, and its own parameters.
  net.train();
  net.zero_grad();
  sum(mul(net(images), Tensor::full({1}, 0.5f))).backward();
  for (const char* const path : {"0", "6.last", "13"})
    CHECK(net.find(path).parameters()[0].grad().defined());
}

TEST_CASE("quantization after training keeps a batch norm that cannot be folded",
          "[quant][batch_norm]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{MaxPool2d{2}, BatchNorm2d{1}, Flatten{}, Linear{16, 4}};
  train_a_little(net, {6, 8, 8, 1}, 3);
  net.eval();
  const Tensor images = random_images({20, 8, 8, 1}, 4);
  const Tensor expected = net(images);
  prepare_ptq(net, example, QConfig::int8());
  calibrate(net, images);
  const DeployedMode deployed(net);
  // The outputs may differ only by 8-bit rounding; without the batch norm they would differ far
  // more.
  CHECK(quantrain::test::max_difference(net(images), expected) < 0.1);
  check_parity(net, convert(net, example), images);
}

TEST_CASE("arithmetic with constants converts to one table, or to one for each channel",
          "[quant][constants]") {
  const Tensor each = Tensor::from({3}, std::vector<float>{0.5f, -1.25f, 2.0f});
  const Tensor one = Tensor::full({1}, -0.75f);
  const Tensor pixels = Tensor::from({1, 1, 1, 3}, std::vector<float>{1.5f, 0.25f, -3.0f});
  const Constant::Function functions[] = {[](const Tensor& x, const Tensor& c) { return x * c; },
                                          [](const Tensor& x, const Tensor& c) { return c * x; },
                                          [](const Tensor& x, const Tensor& c) { return x + c; },
                                          [](const Tensor& x, const Tensor& c) { return c + x; },
                                          [](const Tensor& x, const Tensor& c) { return x - c; },
                                          [](const Tensor& x, const Tensor& c) { return c - x; },
                                          [](const Tensor& x, const Tensor& c) { return x / c; }};
  for (const Constant::Function& function : functions) {
    for (const Tensor& c : {each, one, pixels}) {
      CAPTURE(&function - functions, c.elements());
      const Tensor example = random_images({2, 8, 8, 1}, 1);
      const Tensor own = Tensor::from(c.shape(), test::span_of(c));
      Sequential net{
          Conv2d{1, 3, {.kernel = 3}}, Constant{function, own}, Flatten{}, Linear{108, 4}};
      prepare_qat(net, example, QConfig::int8());
      train_a_little(net, {6, 8, 8, 1}, 2);
      CHECK(values(net.find("1").parameters()[0]) != values(c));  // the constant is trained
      const IntegerModel model = convert(net, example);
      const auto& step = step_named(model.program(), "1");
      CHECK(std::get<integer::QuantizedLookup>(step.operation).channels() == c.elements());
      check_parity(net, model, random_images({20, 8, 8, 1}, 9));
    }
  }
}

TEST_CASE("division by a code that means 0 is refused", "[quant][constants]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{
      Constant{[](const Tensor& x, const Tensor& c) { return c / x; }, Tensor::full({1}, 1.0f)},
      Linear{12, 4}};
  const QParams params{{.bits = 8}, -1, {0.1f}, {0}};
  prepare_qat(net, example, QConfig::int8());
  output_quantizer(net, "0").update_params(params);
  QUANTRAIN_CHECK_ERROR(
      net(example), QuantError, "the function is inf at 0, a value that its input can have");
}

}  // namespace quantrain::quant
