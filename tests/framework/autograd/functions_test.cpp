#include "framework/autograd/ops/functions.hpp"

#include <cmath>

#include "framework/autograd/graph.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/prelu.hpp"
#include "framework/autograd/ops/sum.hpp"
#include "framework/core/error.hpp"
#include "tests/floats.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using functions::Function;
using test::check_gradient;
using test::kAwkwardSizes;
using test::kInfinity;
using test::make_leaf;
using test::make_tensor;
using test::random_leaf;
using test::spread_leaf;
using test::values;

// For floats, exp, sigmoid and tanh run in float32 loops. Their exp is off by a few units in the
// last place.
constexpr double kExpEpsilon = 1e-6;

std::vector<Function> every_function() {
  return {functions::sigmoid(),
          functions::tanh(),
          functions::hard_sigmoid(),
          functions::hard_sigmoid(0.2f, 0.5f),
          functions::hard_swish(),
          functions::silu(),
          functions::gelu(),
          functions::gelu_tanh(),
          functions::mish(),
          functions::softplus(),
          functions::erf(),
          functions::selu(),
          functions::power(3.0f),
          functions::power(1.5f),
          functions::sqrt(),
          functions::log(),
          functions::leaky_relu(0.125f),
          functions::elu(0.75f),
          functions::exp(),
          functions::square(),
          functions::abs(),
          functions::clamp(-0.7f, 1.1f)};
}

/// Each code from -128 to 127 once. The scale is 1/16.
Tensor every_code() {
  auto codes = std::make_shared<Codes>();
  codes->params = {{.bits = 8, .is_signed = true}, -1, {0.0625f}, {0}};
  codes->bytes = Buffer<uint8_t>(256);
  for (int64_t i = 0; i < 256; ++i) codes->bytes[i] = static_cast<uint8_t>(i);
  return Tensor::from_codes({128, 2}, std::move(codes)).set_requires_grad(true);
}

}  // namespace

TEST_CASE("functions agree with double precision at every size", "[autograd][functions]") {
  for (const Function& function : every_function()) {
    CAPTURE(function->type);
    for (const int64_t n : kAwkwardSizes) {
      const Tensor x = random_leaf({n}, 3, -4.0f, 4.0f);
      const std::vector<float> in = values(x);
      const std::vector<float> y = values(elementwise(function, x));
      REQUIRE(y.size() == in.size());
      for (size_t i = 0; i < y.size(); ++i) {
        const double expected = function->f(double{in[i]});
        if (function->forward_f32 == nullptr) {
          CHECK(y[i] == static_cast<float>(expected));
        } else {
          CHECK(y[i] == test::Approx(expected).margin(kExpEpsilon).epsilon(kExpEpsilon));
        }
      }
    }
  }
}

TEST_CASE("gradients of functions match finite differences", "[autograd][functions]") {
  for (const Function& function : every_function()) {
    CAPTURE(function->type);
    // Odd multiples of 1/16 from -3.3 to 3.4. None of them is a kink. Near 0, differences do not
    // show the slope of these two.
    if (function->type == "sqrt" || function->type == "log") continue;
    const Tensor x = spread_leaf({5, 11}, 2);
    check_gradient([&] { return elementwise(function, x); }, {x});
  }
  const Tensor positive = make_leaf({2, 3}, {0.5f, 0.75f, 1.0f, 1.5f, 2.5f, 7.0f});
  check_gradient([&] { return quantrain::sqrt(positive); }, {positive});
  check_gradient([&] { return quantrain::log(positive); }, {positive});
  const Tensor negative = make_leaf({2}, {-1.0f, -0.25f});
  check_gradient([&] { return quantrain::sqrt(negative); }, {negative});
  check_gradient([&] { return quantrain::log(negative); }, {negative});
  const Tensor x = spread_leaf({3, 5}, 2);
  for (const int64_t channels : {1, 5}) {
    const Tensor slope = random_leaf({channels}, 4);
    check_gradient([&] { return prelu(x, slope); }, {x, slope});
  }
}

TEST_CASE("functions of codes and of equal floats have the same values and gradients",
          "[autograd][functions]") {
  for (const Function& function : every_function()) {
    CAPTURE(function->type);
    const Tensor codes = every_code();
    const Tensor floats = make_leaf({128, 2}, values(codes));
    const Tensor of_codes = elementwise(function, codes);
    const Tensor of_floats = elementwise(function, floats);
    CHECK(of_codes.kind() == ValueKind::kWaiting);
    sum(of_codes).backward();
    sum(of_floats).backward();
    const std::vector<float> a = values(of_codes);
    const std::vector<float> b = values(of_floats);
    const std::vector<float> grad_a = values(codes.grad());
    const std::vector<float> grad_b = values(floats.grad());
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i] == test::Approx(b[i]).margin(kExpEpsilon).epsilon(kExpEpsilon));
      CHECK(grad_a[i] == test::Approx(grad_b[i]).margin(kExpEpsilon).epsilon(kExpEpsilon));
    }
  }
}

TEST_CASE("prelu of codes and of equal floats has the same values and gradients",
          "[autograd][functions]") {
  const Tensor codes = every_code();
  const Tensor floats = make_leaf({128, 2}, values(codes));
  for (const std::vector<float>& start : {std::vector<float>{0.3f}, {-0.5f, 1.7f}}) {
    const Tensor a = make_leaf({static_cast<int64_t>(start.size())}, start);
    const Tensor b = make_leaf({static_cast<int64_t>(start.size())}, start);
    const Tensor of_codes = prelu(codes, a);
    CHECK(of_codes.kind() == ValueKind::kWaiting);
    CHECK(values(of_codes) == values(prelu(floats, b)));
    sum(of_codes).backward();
    sum(prelu(floats, b)).backward();
    CHECK(values(a.grad()) == values(b.grad()));
  }
  CHECK(values(codes.grad()) == values(floats.grad()));
  CHECK(prelu(Tensor::zeros({0, 3}), Tensor::zeros({3})).shape() == Shape{0, 3});
  CHECK(values(prelu(make_tensor({1}, {-3}), make_tensor({1}, {2}))) == std::vector<float>{-6});
}

TEST_CASE("functions stay finite where their arguments are large", "[autograd][functions]") {
  const Tensor x = make_leaf({4}, {-3e38f, -1e4f, 1e4f, 3e38f});
  for (const Function& function : {functions::sigmoid(),
                                   functions::tanh(),
                                   functions::hard_sigmoid(),
                                   functions::hard_swish(),
                                   functions::silu(),
                                   functions::gelu(),
                                   functions::gelu_tanh(),
                                   functions::mish(),
                                   functions::softplus(),
                                   functions::erf(),
                                   functions::selu(),
                                   functions::sqrt(),
                                   functions::log(),
                                   functions::elu(1.0f)}) {
    CAPTURE(function->type);
    const Tensor y = elementwise(function, x);
    sum(y).backward();
    for (const float v : values(y)) CHECK(std::isfinite(v));
    for (const float v : values(x.grad())) CHECK(std::isfinite(v));
  }
  CHECK(values(gelu(make_tensor({1}, {-6.0f})))[0] ==
        test::Approx(-6.0 * 0.5 * std::erfc(6.0 / std::sqrt(2.0))));  // 1 + erf would cancel
}

TEST_CASE("functions have the values of ONNX's definitions", "[autograd][functions]") {
  const auto at = [](const Function& function, float x) {
    return values(elementwise(function, make_tensor({1}, {x})))[0];
  };
  // onnx/docs/Operators.md: Selu's default alpha and gamma, HardSigmoid's default alpha.
  CHECK(at(functions::selu(), 1.0f) == 1.05070102214813232421875f);
  CHECK(at(functions::selu(), -1.0f) == test::Approx(1.0507010 * 1.6732632 * (std::exp(-1.0) - 1)));
  CHECK(at(functions::hard_sigmoid(0.2f, 0.5f), 1.0f) == 0.7f);
  CHECK(at(functions::softplus(), 0.0f) == static_cast<float>(std::log(2.0)));
  CHECK(at(functions::softplus(), 1000.0f) == 1000.0f);
  CHECK(at(functions::erf(), 1.0f) == 0.8427007929f);
  CHECK(at(functions::mish(), 1.0f) == 0.8650983883f);       // torch.nn.Mish
  CHECK(at(functions::gelu_tanh(), 1.0f) == 0.8411919906f);  // torch.nn.GELU(approximate="tanh")
  CHECK(at(functions::power(3.0f), -2.0f) == -8.0f);
  CHECK(at(functions::power(0.5f), -2.0f) == 0.0f);
  CHECK(at(functions::power(0.0f), 0.0f) == 1.0f);
  CHECK(at(functions::sqrt(), 2.25f) == 1.5f);
  CHECK(at(functions::sqrt(), -1.0f) == 0.0f);
  CHECK(at(functions::log(), 1.0f) == 0.0f);
  CHECK(at(functions::log(), 0.0f) == static_cast<float>(-126.0 * std::log(2.0)));
}

TEST_CASE("a recorded function has its parameters as attributes", "[autograd][functions]") {
  const Tensor x = random_leaf({3}, 1);
  CHECK(leaky_relu(x, 0.125f).node()->attributes() == Attributes{{"alpha", 0.125}});
  CHECK(elu(x, 0.5f).node()->attributes() == Attributes{{"alpha", 0.5}});
  CHECK(clamp(x, -1.0f, 2.0f).node()->attributes() == Attributes{{"min", -1.0}, {"max", 2.0}});
  CHECK(clamp(x, -1.0f, 2.0f).node()->type() == "clip");
  CHECK(silu(x).node()->attributes().empty());
  CHECK(power(x, 1.5f).node()->attributes() == Attributes{{"exponent", 1.5}});
  CHECK(hard_sigmoid(x, 0.25f, 0.75f).node()->attributes() ==
        Attributes{{"alpha", 0.25}, {"beta", 0.75}});
}

TEST_CASE("invalid parameters of functions are refused", "[autograd][functions]") {
  const Tensor x = Tensor::zeros({2});
  QUANTRAIN_CHECK_ERROR(
      leaky_relu(x, kInfinity), DataError, "[leaky_relu] slope is inf, expected a finite number");
  QUANTRAIN_CHECK_ERROR(elu(x, std::nanf("")), DataError, "[elu] alpha is nan");
  QUANTRAIN_CHECK_ERROR(
      clamp(x, 1.0f, 0.0f), DataError, "[clamp] no finite number lies between the bounds 1 and 0");
  QUANTRAIN_CHECK_ERROR(clamp(x, kInfinity, kInfinity), DataError, "no finite number");
  QUANTRAIN_CHECK_ERROR(clamp(x, std::nanf(""), 1.0f), DataError, "no finite number");
  CHECK(values(clamp(make_tensor({3}, {-9, 1, 9}), -kInfinity, 2.0f)) ==
        std::vector<float>{-9, 1, 2});
  QUANTRAIN_CHECK_ERROR(power(x, -0.5f), DataError, "[power] exponent is -0.5");
  QUANTRAIN_CHECK_ERROR(power(x, kInfinity), DataError, "[power] exponent is inf");
  QUANTRAIN_CHECK_ERROR(hard_sigmoid(x, kInfinity, 0), DataError, "[hard_sigmoid] alpha is inf");
  QUANTRAIN_CHECK_ERROR(hard_sigmoid(x, 1, std::nanf("")), DataError, "[hard_sigmoid] beta is nan");
  QUANTRAIN_CHECK_ERROR(prelu(Tensor::zeros({2, 3}), Tensor::zeros({2})),
                        ShapeError,
                        "[prelu] slope is neither [1] nor [C] of x [..., C]: x [2, 3], slope [2]");
  QUANTRAIN_CHECK_ERROR(prelu(Tensor::zeros({2, 0}), Tensor::zeros({0})), ShapeError, "[prelu]");
}

}  // namespace quantrain
