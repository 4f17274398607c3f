// Arithmetic of two tensors that depend on the input: squeeze and excitation, and refused
// operations.
#include <algorithm>
#include <functional>
#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::quant {
namespace {

using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// y = relu(x * sigmoid(W2 relu(W1 mean(x)))). With factors_first, forward() itself computes
/// mul(sigmoids, x). Otherwise the layer Mul computes x * sigmoids.
class SqueezeLayer : public Module {
 public:
  SqueezeLayer(int64_t channels, bool factors_first)
      : mean_(add("mean", GlobalAvgPool2d{})),
        down_(add("down", Conv2d{channels, 2, {.kernel = 1}})),
        relu_(add("relu", ReLU{})),
        up_(add("up", Conv2d{2, channels, {.kernel = 1}})),
        gate_(add("gate", Sigmoid{})),
        product_(add("product", Mul{})),
        last_(add("last", ReLU{})),
        factors_first_(factors_first) {}
  std::string_view type() const override { return "Squeeze"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor factors = (*gate_)((*up_)((*relu_)((*down_)((*mean_)(x)))));
    if (factors_first_) return (*last_)(quantrain::mul(factors, x));
    return (*last_)((*product_)(x, factors));
  }

 private:
  std::shared_ptr<GlobalAvgPool2d> mean_;
  std::shared_ptr<Conv2d> down_;
  std::shared_ptr<ReLU> relu_;
  std::shared_ptr<Conv2d> up_;
  std::shared_ptr<Sigmoid> gate_;
  std::shared_ptr<Mul> product_;
  std::shared_ptr<ReLU> last_;
  bool factors_first_;
};

/// A function of the outputs x and y of two layers.
using Function = std::function<Tensor(const Tensor& x, const Tensor& y)>;

class Arithmetic : public Module {
 public:
  explicit Arithmetic(Function function) : function_(std::move(function)) {}
  std::string_view type() const override { return "Arithmetic"; }

 protected:
  Tensor forward(const Tensor& x, const Tensor& y) override { return function_(x, y); }

 private:
  Function function_;
};

/// last(function(first(x), second(x))). The function runs in forward() itself or in its own layer.
class Joined : public Module {
 public:
  Joined(Function function, bool layer)
      : function_(std::move(function)),
        first_(add("first", Linear{12, 12})),
        second_(add("second", Linear{12, 12})),
        last_(add("last", Linear{12, 4})) {
    if (layer) layer_ = add("layer", Arithmetic{function_});
  }
  std::string_view type() const override { return "Joined"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor a = (*first_)(x);
    const Tensor b = (*second_)(x);
    return (*last_)(layer_ ? (*layer_)(a, b) : function_(a, b));
  }

 private:
  Function function_;
  std::shared_ptr<Linear> first_;
  std::shared_ptr<Linear> second_;
  std::shared_ptr<Linear> last_;
  std::shared_ptr<Arithmetic> layer_;
};

}  // namespace

TEST_CASE("squeeze and excitation converts to integers that equal the simulation", "[quant][mul]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net{
      Conv2d{1, 5, {.kernel = 3}}, ReLU{}, SqueezeLayer{5, false}, Flatten{}, Linear{180, 4}};
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 8, 8, 1}, 4);
  const IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "model");
  CHECK(IntegerModel::load(folder / "model").program() == model.program());
}

TEST_CASE("the error about a product outside of a layer suggests the layer Mul", "[quant][mul]") {
  Sequential net{SqueezeLayer{1, true}, Flatten{}, Linear{64, 4}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, random_images({2, 8, 8, 1}, 1), QConfig::int8()),
                        GraphError,
                        "has no place for a FakeQuantize: use the layer Mul");
}

TEST_CASE("two tensors of a batch of 1 are not taken for constants", "[quant][mul]") {
  const int64_t n = GENERATE(1, 2);
  const Tensor example = random_images({n, 12}, 1);
  const Function functions[] = {mul, [](const Tensor& x, const Tensor& y) { return add(x, y); }};
  for (const Function& function : functions) {
    CAPTURE(n, &function - functions);
    Joined net(function, true);
    prepare_qat(net, example, QConfig::int8());
    train_a_little(net, {6, 12}, 3);
    CHECK(plan(net, example).convertible());
    const IntegerModel model = convert(net, example);
    const auto& step = model.program().steps.at(2);
    CHECK(type(step.operation) == (&function == functions ? "quantized_mul" : "quantized_add"));
    CHECK(step.inputs.size() == 2);
    check_parity(net, model, random_images({40, 12}, 9));
    // If the function runs in forward() itself, the message recommends the layer for two tensors.
    Joined alone(function, false);
    QUANTRAIN_CHECK_ERROR(prepare_qat(alone, example, QConfig::int8()),
                          GraphError,
                          "in its forward() has no place for a FakeQuantize: use the layer " +
                              std::string(&function == functions ? "Mul" : "Add"));
  }
  Sequential net{
      Conv2d{1, 5, {.kernel = 3}}, ReLU{}, SqueezeLayer{5, false}, Flatten{}, Linear{180, 4}};
  const Tensor images = random_images({n, 8, 8, 1}, 1);
  prepare_qat(net, images, QConfig::int8());
  train_a_little(net, {6, 8, 8, 1}, 3);
  check_parity(net, convert(net, images), random_images({40, 8, 8, 1}, 9));
}

TEST_CASE("constants convert to tables in a batch of 1, too", "[quant][constants]") {
  const Tensor example = random_images({1, 12}, 1);
  const Tensor c = Tensor::full({1, 12}, 0.5f);
  const Function functions[] = {[c](const Tensor& x, const Tensor&) { return x * c; },
                                [c](const Tensor& x, const Tensor&) { return x + c; }};
  for (const Function& function : functions) {
    Sequential net{Linear{12, 12}, Elementwise{functions::tanh()}, Joined{function, true}};
    QUANTRAIN_CHECK_ERROR(
        prepare_qat(*std::make_unique<Joined>(function, false), example, QConfig::int8()),
        GraphError,
        "of [1, 12] in its forward() has no place for a FakeQuantize: run it in a layer of its "
        "own");
    prepare_qat(net, example, QConfig::int8());
    train_a_little(net, {6, 12}, 3);
    check_parity(net, convert(net, example), random_images({40, 12}, 9));
  }
}

TEST_CASE("operations without an integer form are refused for any batch size, with advice",
          "[quant][mul]") {
  const int64_t n = GENERATE(1, 2);
  struct Case {
    Function function;
    std::string text;  ///< # stands for the batch size
  };
  const auto image = [](const Tensor& x) { return reshape(x, {x.dim(0), 2, 2, 3}); };
  const auto rows = [](const Tensor& x) { return reshape(x, {x.dim(0), 12}); };
  const Case cases[] = {
      {[](const Tensor& x, const Tensor& y) { return x - y; },
       "this subtraction has no integer form: [#, 12] - [#, 12]; a constant operand must be one "
       "number, or "
       "one for each channel (the last axis). If both operands depend on the input, multiply the "
       "second by the constant -1 in a layer of its own, and use the layer Add"},
      {[](const Tensor& x, const Tensor& y) { return x / y; },
       "this division has no integer form: [#, 12] / [#, 12]; the divisor must be a constant: "
       "one number, or one for each channel (the last axis). If it depends on the input, use an "
       "Elementwise of a function that is finite at 0, such as 1 / (v + 1), and the layer Mul"},
      {[=](const Tensor& x, const Tensor& y) {
         return rows(image(x) + global_max_pool2d(image(y)));
       },
       "this addition that broadcasts has no integer form: [#, 2, 2, 3] + [#, 1, 1, 3]; a constant "
       "operand must be one number, or one for each channel (the last axis). Operands that depend "
       "on the input "
       "need the same shape"},
      {[=](const Tensor& x, const Tensor& y) {
         return rows(image(x) * slice(image(y), -1, {.end = 1}));
       },
       "this multiplication has no integer form: [#, 2, 2, 3] * [#, 2, 2, 1]; a constant operand "
       "must be one "
       "number, or one for each channel (the last axis). If both operands depend on the input, "
       "they need the same shape, or [N, ..., C] and [N, 1, ..., 1, C]"}};
  const Tensor example = random_images({n, 12}, 1);
  for (const Case& c : cases) {
    std::string text = c.text;
    std::replace(text.begin(), text.end(), '#', n == 1 ? '1' : '2');
    INFO(text);
    Joined alone(c.function, false);
    QUANTRAIN_CHECK_ERROR(
        prepare_qat(alone, example, QConfig::int8()), GraphError, "[Joined] " + text);
    const auto deployed = [&] {
      Joined net(c.function, true);
      QConfig config = QConfig::int8();
      config.model.activation.observer = MovingAverageOptions{};  // so that no divisor rounds to 0
      prepare_qat(net, example, config);
      train_a_little(net, {6, 12}, 2);
      return convert(net, example);
    };
    QUANTRAIN_CHECK_ERROR(deployed(), GraphError, "[layer] " + text);
  }
}

TEST_CASE("a difference or a quotient converts if it is written as its error advises",
          "[quant][mul]") {
  /// For a difference: last(joined(first(x), instead(second(x)))), where `instead` is -v and
  /// `joined` is Add. For a quotient: last(joined(first(x), instead(gate(second(x))))), where
  /// `gate` is a sigmoid, `instead` is 1 / (v + 1) and `joined` is Mul.
  class Instead : public Module {
   public:
    explicit Instead(bool difference) : difference_(difference) {
      if (difference) {
        instead_ = add("instead", Arithmetic{[](const Tensor& x, const Tensor&) {
                         return x * Tensor::full({1}, -1.0f);
                       }});
        joined_ = add("joined", Add{});
      } else {
        gate_ = add("gate", Sigmoid{});
        const auto reciprocal = std::make_shared<const ElementwiseFunction>(ElementwiseFunction{
            .type = "reciprocal",
            .f = [](double v) { return 1.0 / (v + 1.0); },
            .derivative = [](double v) { return -1.0 / ((v + 1.0) * (v + 1.0)); }});
        instead_ = add("instead", Elementwise{reciprocal});
        joined_ = add("joined", Mul{});
      }
    }
    std::string_view type() const override { return "Instead"; }

   protected:
    Tensor forward(const Tensor& x) override {
      const Tensor a = (*first_)(x);
      const Tensor b = (*second_)(x);
      return (*last_)((*joined_)(a, difference_ ? (*instead_)(b, b) : (*instead_)((*gate_)(b))));
    }

   private:
    std::shared_ptr<Linear> first_ = add("first", Linear{12, 12});
    std::shared_ptr<Linear> second_ = add("second", Linear{12, 12});
    std::shared_ptr<Linear> last_ = add("last", Linear{12, 4});
    std::shared_ptr<Sigmoid> gate_;
    std::shared_ptr<Module> instead_;
    std::shared_ptr<Module> joined_;
    bool difference_;
  };
  const Tensor example = random_images({2, 12}, 1);
  for (const bool difference : {true, false}) {
    Instead net(difference);
    prepare_qat(net, example, QConfig::int8());
    train_a_little(net, {6, 12}, 3);
    check_parity(net, convert(net, example), random_images({40, 12}, 9));
  }
}

}  // namespace quantrain::quant
