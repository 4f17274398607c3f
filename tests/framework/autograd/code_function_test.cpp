// Arithmetic of codes with constants, and batch norm of codes. Each channel may have a function of
// its own.
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops.hpp"
#include "tests/framework/autograd/codes.hpp"

namespace quantrain {
namespace {

using test::activation_params;
using test::activations;
using test::as_floats;
using test::check_same_gradient;
using test::code_values;
using test::scale_of;
using test::values;
using test::zero_of;

}  // namespace

TEST_CASE("arithmetic of codes with constants is rounded once, channel by channel",
          "[autograd][constants][integer]") {
  struct Case {
    Tensor (*of)(const Tensor&, const Tensor&);
    double (*f)(double, double);
  };
  const Case cases[] = {{[](const Tensor& a, const Tensor& b) { return a + b; },
                         [](double a, double b) { return a + b; }},
                        {sub, [](double a, double b) { return a - b; }},
                        {mul, [](double a, double b) { return a * b; }},
                        {quantrain::div, [](double a, double b) { return a / b; }}};
  for (const Case& c : cases) {
    for (const Shape& constants : {Shape{}, Shape{1}, Shape{3}, Shape{1, 1, 3}}) {
      for (const bool swapped : {false, true}) {
        CAPTURE(constants, swapped);
        const QType type{8, false, false};
        if (swapped && c.of == quantrain::div) continue;  // the divisor x may be 0
        const Tensor x = activations({5, 4, 3}, type, 0.07f, 131, 1);
        const Tensor constant = test::random_tensor(constants, 4).set_requires_grad(true);
        const Tensor y = swapped ? c.of(constant, x) : c.of(x, constant);
        REQUIRE(y.kind() == ValueKind::kWaiting);
        REQUIRE(y.shape() == x.shape());
        std::vector<float> expected;
        const std::vector<int32_t> q = code_values(x);
        for (size_t i = 0; i < q.size(); ++i) {
          const double v = scale_of(x) * (q[i] - 131);
          const double k = constant.data()[static_cast<int64_t>(i) % constant.elements()];
          expected.push_back(static_cast<float>(swapped ? c.f(k, v) : c.f(v, k)));
        }
        CHECK(values(y) == expected);
        const Tensor floats = as_floats(x).set_requires_grad(true);
        const Tensor z = swapped ? c.of(constant, floats) : c.of(floats, constant);
        const Tensor grad_y = test::random_tensor(y.shape(), 9);
        const std::vector<Tensor> a = y.node()->backward(grad_y);
        const std::vector<Tensor> b = z.node()->backward(grad_y);
        for (size_t i = 0; i < 2; ++i) {
          // The gradient of a quotient reads the result, which the float operation rounds twice.
          CHECK(test::max_difference(a[i], b[i]) <= (c.of == quantrain::div ? 1e-3 : 0.0));
        }
        constexpr int32_t kFar = 1 << 20;
        const QParams to = activation_params(type, 0.3f, 100);
        std::vector<int64_t> unclamped;
        for (const float value : expected)
          unclamped.push_back(quantize(value, 0.3f, 100, -kFar, kFar));
        test::check_requantize(y, to, unclamped);
      }
    }
  }
}

TEST_CASE("in evaluation, batch norm of codes is a table for each channel",
          "[autograd][batch_norm][integer]") {
  const Tensor gamma = test::random_tensor({3}, 1);
  const Tensor beta = test::random_tensor({3}, 2);
  const Tensor mean = test::random_tensor({3}, 3);
  const Tensor variance = Tensor::from({3}, std::vector<float>{0.5f, 0.0f, 7.0f});
  for (const QType& type : test::activation_types()) {
    const int32_t zero = zero_of(type);
    const Tensor x = activations({5, 2, 3}, type, 0.07f, zero, 1);
    CHECK(batch_norm(x, gamma, beta, Tensor::zeros({3}), Tensor::zeros({3})).kind() ==
          ValueKind::kFloat);
    const Tensor y = batch_norm(x, gamma, beta, mean, variance, {.training = false});
    REQUIRE(y.kind() == ValueKind::kWaiting);
    std::vector<float> expected;
    const std::vector<int32_t> codes = code_values(x);
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto c = static_cast<int64_t>(i % 3);
      const double deviation = std::sqrt(static_cast<double>(variance.data()[c]) + 1e-5f);
      const double factor = gamma.data()[c] / deviation;
      const double centred = scale_of(x) * (codes[i] - zero) - mean.data()[c];
      expected.push_back(static_cast<float>(factor * centred + beta.data()[c]));
    }
    CHECK(values(y) == expected);
    check_same_gradient(y,
                        batch_norm(as_floats(x).set_requires_grad(true),
                                   gamma,
                                   beta,
                                   mean,
                                   variance,
                                   {.training = false}));
  }
}

}  // namespace quantrain
