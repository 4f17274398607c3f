#include "framework/autograd/grad_check.hpp"

#include <cmath>
#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/mean.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

// y = x^2. Its gradient is factor * x * grad_y, which is correct if factor is 2.
class SquareNode : public Node {
 public:
  SquareNode(Tensor x, float factor) : x_(std::move(x)), factor_(factor) {}
  std::string_view type() const override { return "square"; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(x_.shape());
    float* const out = grad_x.mutable_data();
    for (int64_t i = 0; i < x_.elements(); ++i) out[i] = factor_ * x_.data()[i] * grad_y.data()[i];
    return {grad_x};
  }

 private:
  Tensor x_;
  float factor_;
};

Tensor squared(const Tensor& x, float factor = 2.0f) {
  Tensor y = Tensor::empty(x.shape());
  float* const out = y.mutable_data();
  for (int64_t i = 0; i < x.elements(); ++i) out[i] = x.data()[i] * x.data()[i];
  return record<SquareNode>(y, {x}, x.detach(), factor);
}

// y = x. Its gradient is factor * grad_y, which is correct if factor is 1.
class ScaledNode : public Node {
 public:
  explicit ScaledNode(float factor) : factor_(factor) {}
  std::string_view type() const override { return "scaled"; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {mul(grad_y, Tensor::full({}, factor_))};
  }

 private:
  float factor_;
};

Tensor leaf() {
  const float values[] = {-1.5f, 0.0f, 0.25f, 3.0f};
  Tensor x = Tensor::from({2, 2}, values);
  return x.set_requires_grad(true).set_name("x");
}

}  // namespace

TEST_CASE("grad_check accepts a right gradient and finds a wrong one", "[autograd][grad_check]") {
  const Tensor x = leaf();
  const GradCheckResult right = grad_check([&] { return squared(x); }, {x});
  CHECK(right.ok);
  CHECK(right.max_error < 1e-4);
  const GradCheckResult wrong = grad_check([&] { return squared(x, 1.9f); }, {x});
  CHECK_FALSE(wrong.ok);
  CHECK(wrong.worst.find("input 0 (x) [2, 2] element") == 0);
}

TEST_CASE("grad_check finds a wrong gradient even if it is small", "[autograd][grad_check]") {
  for (const int64_t n : {1, 60, 1000}) {
    const Tensor x = Tensor::full({n}, 0.5f).set_requires_grad(true);
    const auto check = [&](float wrong) {
      const auto function = [&] {
        const Tensor right = mean(x);
        return record<ScaledNode>(right.detach(), {right}, wrong);
      };
      return grad_check(function, {x}).ok;
    };
    CAPTURE(n);
    CHECK(check(1.0f));
    for (const float wrong : {0.0f, -1.0f, 0.9f, 1.1f}) CHECK_FALSE(check(wrong));
  }
}

TEST_CASE("grad_check leaves inputs and their gradients as they were", "[autograd][grad_check]") {
  Tensor x = leaf();
  const Tensor grad = Tensor::full({2, 2}, 7.0f);
  x.set_grad(grad);
  grad_check([&] { return squared(x); }, {x});
  CHECK(x.grad().same_as(grad));
  CHECK(x.data()[0] == -1.5f);
  CHECK(x.data()[3] == 3.0f);
  CHECK(grad_check([&] { return squared(x); }, {x, x}).ok);
  CHECK(x.grad().same_as(grad));
  int calls = 0;
  const auto fail_at_third = [&] {
    if (++calls == 3) throw DataError("function", "does not like it");
    return squared(x);
  };
  QUANTRAIN_CHECK_ERROR(grad_check(fail_at_third, {x}), DataError, "does not like it");
  CHECK(x.grad().same_as(grad));
  CHECK(x.data()[0] == -1.5f);
}

TEST_CASE("grad_check supports results that share memory with the input",
          "[autograd][grad_check]") {
  const Tensor x = leaf();
  const auto same = [&](float factor) { return record<ScaledNode>(x.detach(), {x}, factor); };
  CHECK(grad_check([&] { return same(1.0f); }, {x}).ok);
  CHECK_FALSE(grad_check([&] { return same(0.5f); }, {x}).ok);
}

TEST_CASE("a gradient that is not finite is never ok", "[autograd][grad_check]") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float factor : {infinity, -infinity, std::nanf("")}) {
    const Tensor x = leaf();
    const GradCheckResult result = grad_check([&] { return squared(x, factor); }, {x});
    CHECK_FALSE(result.ok);
    CHECK(std::isinf(result.max_error));
  }
}

TEST_CASE("grad_check refuses what it cannot check", "[autograd][grad_check]") {
  const Tensor x = leaf();
  const Tensor constant = Tensor::zeros({2});
  QUANTRAIN_CHECK_ERROR(
      grad_check([&] { return squared(constant); }, {constant}), GraphError, "no input requires");
  QUANTRAIN_CHECK_ERROR(
      grad_check([&] { return constant; }, {x}), GraphError, "requires no gradient");
  const Tensor y = squared(x);
  QUANTRAIN_CHECK_ERROR(
      grad_check([&] { return squared(y); }, {y}), GraphError, "input 0 is not a leaf");
  int calls = 0;
  const auto changing = [&] { return ++calls == 1 ? squared(x) : squared(squared(x)); };
  QUANTRAIN_CHECK_ERROR(grad_check(changing, {x}), GraphError, "for the same inputs");
}

}  // namespace quantrain
