#include "framework/autograd/ops/relu.hpp"

#include "framework/autograd/node.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::make_tensor;
using test::values;

TEST_CASE("relu clamps at 0, and relu6 also clamps at 6", "[autograd][relu]") {
  const Tensor x = make_tensor({5}, {-1, 0, 2, 6, 7});
  CHECK(values(relu(x)) == std::vector<float>{0, 0, 2, 6, 7});
  CHECK(values(relu6(x)) == std::vector<float>{0, 0, 2, 6, 6});
  CHECK(relu(Tensor::zeros({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("relu gradient matches finite differences", "[autograd][relu]") {
  for (const int64_t n : {1, 7, 8, 9, 65}) {
    const Tensor x = test::spread_leaf({n}, 1);
    check_gradient([&] { return relu(x); }, {x});
  }
}

TEST_CASE("relu6 gradient matches finite differences", "[autograd][relu]") {
  // 120 values up to +-7.5, at least 1 / 16 from the kinks at 0 and 6.
  const Tensor x = test::spread_leaf({2, 60}, 1);
  check_gradient([&] { return relu6(x); }, {x});
}

TEST_CASE("the gradient at the kinks is 0", "[autograd][relu]") {
  Tensor x = make_tensor({3}, {0, 6, 3}).set_requires_grad(true);
  const Tensor ones = Tensor::full({3}, 1.0f);
  CHECK(values(relu(x).node()->backward(ones)[0]) == std::vector<float>{0, 1, 1});
  CHECK(values(relu6(x).node()->backward(ones)[0]) == std::vector<float>{0, 0, 1});
  CHECK(relu(x).node()->type() == "relu");
  CHECK(relu6(x).node()->type() == "relu6");
}

}  // namespace quantrain
