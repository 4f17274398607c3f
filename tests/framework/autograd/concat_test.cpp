#include "framework/autograd/ops/concat.hpp"

#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::make_tensor;
using test::random_leaf;
using test::values;

TEST_CASE("concat puts its operands one after the other along an axis", "[autograd][concat]") {
  const Tensor a = make_tensor({2, 1}, {1, 2});
  const Tensor b = make_tensor({2, 2}, {3, 4, 5, 6});
  const Tensor y = concat({a, b}, 1);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(values(y) == std::vector<float>{1, 3, 4, 2, 5, 6});
  CHECK(values(concat({a, b}, -1)) == values(y));
  CHECK(values(concat({b, Tensor::full({1, 2}, 9.0f)}, 0)) == std::vector<float>{3, 4, 5, 6, 9, 9});
  CHECK(values(concat({b, Tensor::zeros({0, 2})}, 0)) == values(b));
  CHECK(concat({Tensor::zeros({0, 1}), Tensor::zeros({0, 2})}, 1).shape() == Shape{0, 3});
  CHECK(values(concat({a}, 0)) == values(a));
}

TEST_CASE("concat gradient matches finite differences", "[autograd][concat]") {
  const Tensor a = random_leaf({2, 1, 3}, 1);
  const Tensor b = random_leaf({2, 4, 3}, 2);
  const Tensor c = random_leaf({2, 2, 3}, 3);
  check_gradient([&] { return concat({a, b, c}, 1); }, {a, b, c});
  check_gradient([&] { return concat({b, b}, -1); }, {b});
}

TEST_CASE("concat computes only the gradients that are needed", "[autograd][concat]") {
  const Tensor y = concat({Tensor::zeros({1, 2}), random_leaf({1, 1}, 1)}, 1);
  const std::vector<Tensor> grads = y.node()->backward(make_tensor({1, 3}, {1, 2, 3}));
  CHECK_FALSE(grads[0].defined());
  CHECK(values(grads[1]) == std::vector<float>{3});
  CHECK(y.node()->attributes().integer("axis") == 1);
}

TEST_CASE("concat rejects operands that do not fit", "[autograd][concat]") {
  QUANTRAIN_CHECK_ERROR(concat({}, 0), ShapeError, "[concat] there is no operand");
  QUANTRAIN_CHECK_ERROR(concat({Tensor::zeros({2, 3}), Tensor::zeros({3, 3})}, 1),
                        ShapeError,
                        "[concat] operands may differ along axis 1 only: [2, 3] and [3, 3]");
  QUANTRAIN_CHECK_ERROR(
      concat({Tensor::zeros({2, 3}), Tensor::zeros({2})}, 1), ShapeError, "[2, 3] and [2]");
  QUANTRAIN_CHECK_ERROR(concat({Tensor::zeros({2, 3})}, 2), ShapeError, "no axis 2");
  const Tensor long_axis = Tensor::zeros({0, std::numeric_limits<int64_t>::max()});
  QUANTRAIN_CHECK_ERROR(
      concat({long_axis, long_axis}, 1), ShapeError, "[concat] operands are too long along axis 1");
}

}  // namespace quantrain
