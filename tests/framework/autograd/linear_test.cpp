#include "framework/autograd/ops/linear.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::make_tensor;
using test::random_leaf;
using test::values;

TEST_CASE("linear is x times the transposed weight plus the bias", "[autograd][linear]") {
  const Tensor x = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor weight = make_tensor({2, 3}, {1, 0, -1, 0.5f, 0.5f, 0});
  CHECK(values(linear(x, weight)) == std::vector<float>{-2, 1.5f, -2, 4.5f});
  CHECK(values(linear(x, weight, make_tensor({2}, {10, 20}))) ==
        std::vector<float>{8, 21.5f, 8, 24.5f});
}

TEST_CASE("linear keeps any leading axes", "[autograd][linear]") {
  const Tensor weight = Tensor::full({2, 3}, 1.0f);
  CHECK(linear(Tensor::zeros({3}), weight).shape() == Shape{2});
  CHECK(linear(Tensor::zeros({4, 5, 3}), weight).shape() == Shape{4, 5, 2});
  CHECK(linear(Tensor::zeros({0, 3}), weight).shape() == Shape{0, 2});
  const Tensor bias = make_tensor({2}, {3, 4});
  CHECK(values(linear(Tensor::zeros({1, 0}), Tensor::zeros({2, 0}), bias)) ==
        std::vector<float>{3, 4});
}

TEST_CASE("linear gradient matches finite differences", "[autograd][linear]") {
  const Tensor weight = random_leaf({3, 7}, 1);
  const Tensor bias = random_leaf({3}, 2);
  const Tensor x = random_leaf({4, 7}, 3);
  check_gradient([&] { return linear(x, weight, bias); }, {x, weight, bias});
  const Tensor vector = random_leaf({7}, 4);
  check_gradient([&] { return linear(vector, weight); }, {vector, weight});
  const Tensor deep = random_leaf({2, 1, 7}, 5);
  check_gradient([&] { return linear(deep, weight, bias); }, {deep, weight, bias});
}

TEST_CASE("linear over an empty batch has gradients of 0", "[autograd][linear]") {
  const Tensor weight = random_leaf({2, 3}, 1);
  const Tensor bias = random_leaf({2}, 2);
  const Tensor x = random_leaf({0, 3}, 3);
  const Tensor y = linear(x, weight, bias);
  const std::vector<Tensor> grads = y.node()->backward(Tensor::zeros(y.shape()));
  CHECK(grads[0].shape() == Shape{0, 3});
  CHECK(values(grads[1]) == std::vector<float>(6, 0.0f));
  CHECK(values(grads[2]) == std::vector<float>(2, 0.0f));
}

TEST_CASE("linear computes only the gradients that are needed", "[autograd][linear]") {
  const Tensor weight = random_leaf({2, 3}, 1);
  const Tensor y = linear(test::random_tensor({4, 3}, 2), weight);
  const std::vector<Tensor> grads = y.node()->backward(Tensor::full(y.shape(), 1.0f));
  CHECK_FALSE(grads[0].defined());
  CHECK(grads[1].defined());
  CHECK_FALSE(grads[2].defined());
}

TEST_CASE("linear rejects operands that do not fit", "[autograd][linear]") {
  QUANTRAIN_CHECK_ERROR(linear(Tensor::zeros({2, 4}), Tensor::zeros({5, 3})),
                        ShapeError,
                        "[linear] x is not [..., in] of weight [out, in]: x [2, 4], weight [5, 3]");
  QUANTRAIN_CHECK_ERROR(linear(Tensor::zeros({}), Tensor::zeros({5, 3})), ShapeError, "x []");
  QUANTRAIN_CHECK_ERROR(linear(Tensor::zeros({3}), Tensor::zeros({3})), ShapeError, "weight [3]");
  QUANTRAIN_CHECK_ERROR(linear(Tensor::zeros({2, 3}), Tensor::zeros({5, 3}), Tensor::zeros({4})),
                        ShapeError,
                        "[linear] bias [4] is not [out] of weight [out, in] [5, 3]");
}

}  // namespace quantrain
