#include "framework/autograd/ops/add.hpp"

#include <vector>

#include "framework/autograd/grad_check.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::random_leaf;
using test::random_tensor;
using test::values;

TEST_CASE("add adds, broadcasting either operand", "[autograd][add]") {
  const Tensor a = Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 4});
  const Tensor b = Tensor::from({2}, std::vector<float>{10, 20});
  const Tensor y = a + b;
  CHECK(y.shape() == Shape{2, 2});
  CHECK(std::vector<float>(y.data(), y.data() + 4) == std::vector<float>{11, 22, 13, 24});
  CHECK(add(b, a).data()[3] == 24.0f);
  CHECK(add(Tensor::zeros({0, 2}), b).shape() == Shape{0, 2});
}

TEST_CASE("add gradient matches finite differences", "[autograd][add]") {
  Tensor a = Tensor::full({3, 1, 5}, 0.5f).set_requires_grad(true);
  Tensor b = Tensor::full({4, 1}, -0.25f).set_requires_grad(true);
  const GradCheckResult result = grad_check([&] { return add(a, b); }, {a, b});
  INFO(result.worst);
  CHECK(result.ok);
}

TEST_CASE("add of a tensor to itself has gradient 2", "[autograd][add]") {
  Tensor a = Tensor::full({1}, 3.0f).set_requires_grad(true);
  add(a, a).backward();
  CHECK(a.grad().item() == 2.0f);
}

TEST_CASE("add rejects shapes that do not broadcast", "[autograd][add]") {
  QUANTRAIN_CHECK_ERROR(add(Tensor::zeros({2, 3}), Tensor::zeros({2, 4})),
                        ShapeError,
                        "[add] shapes do not broadcast: [2, 3] and [2, 4]");
}

TEST_CASE("add of any number of operands equals a chain of additions bit for bit",
          "[autograd][add]") {
  for (const size_t count : {2u, 3u, 8u}) {
    for (const int64_t n : {0, 1, 17, 40001}) {
      std::vector<Tensor> x;
      for (size_t i = 0; i < count; ++i) x.push_back(random_tensor({n}, i + 1));
      Tensor chain = x[0];
      for (size_t i = 1; i < count; ++i) chain = chain + x[i];
      CHECK(values(add(x)) == values(chain));
    }
  }
  const Tensor a = random_tensor({2, 1, 3}, 1);
  const Tensor b = random_tensor({4, 1}, 2);
  const Tensor c = random_tensor({}, 3);
  const Tensor y = add({c, b, a, b});
  CHECK(y.shape() == Shape{2, 4, 3});
  CHECK(values(y) == values(((c + b) + a) + b));
  CHECK(add({Tensor::zeros({0, 2}), c, Tensor::zeros({2})}).shape() == Shape{0, 2});
  CHECK(add({a}).same_as(a));
}

TEST_CASE("the gradient of add matches finite differences for any number of operands",
          "[autograd][add]") {
  const Tensor a = random_leaf({3, 1, 5}, 1);
  const Tensor b = random_leaf({4, 1}, 2);
  const Tensor c = random_leaf({3, 4, 5}, 3);
  check_gradient([&] { return add({a, b, c}); }, {a, b, c});
  check_gradient([&] { return add({b, a, b, c, c, a, b, c}); }, {a, b, c});
}

TEST_CASE("add computes only the gradients that are needed", "[autograd][add]") {
  const Tensor y = add({Tensor::zeros({2}), random_leaf({2}, 1), random_leaf({1}, 2)});
  CHECK(y.node()->inputs().size() == 3);
  const std::vector<Tensor> grads = y.node()->backward(Tensor::full({2}, 1.5f));
  CHECK_FALSE(grads[0].defined());
  CHECK(values(grads[1]) == std::vector<float>{1.5f, 1.5f});
  CHECK(values(grads[2]) == std::vector<float>{3.0f});
}

TEST_CASE("add rejects an empty list, and shapes that do not broadcast", "[autograd][add]") {
  QUANTRAIN_CHECK_ERROR(add(std::vector<Tensor>{}), ShapeError, "[add] there is no operand");
  QUANTRAIN_CHECK_ERROR(add({Tensor::zeros({2, 3}), Tensor::zeros({3}), Tensor::zeros({4})}),
                        ShapeError,
                        "[add] shapes do not broadcast: [2, 3] and [4]");
}

}  // namespace quantrain
