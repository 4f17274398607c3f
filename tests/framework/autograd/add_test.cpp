#include "framework/autograd/ops/add.hpp"

#include <vector>

#include "framework/autograd/grad_check.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

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

}  // namespace quantrain
