#include "framework/autograd/ops/matmul.hpp"

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::make_tensor;
using test::random_leaf;
using test::values;

TEST_CASE("matmul multiplies matrices, with or without leading axes", "[autograd][matmul]") {
  const Tensor a = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = make_tensor({3, 2}, {1, 0, 0, 1, 1, 1});
  CHECK(values(matmul(a, b)) == std::vector<float>{4, 5, 10, 11});

  const Tensor tall = matmul(TensorAccess::with_shape(a, {2, 1, 3}), b);
  CHECK(tall.shape() == Shape{2, 1, 2});
  CHECK(values(tall) == std::vector<float>{4, 5, 10, 11});

  const Tensor batched =
      matmul(TensorAccess::with_shape(a, {2, 1, 3}), make_tensor({2, 3, 1}, {1, 1, 1, 2, 0, 0}));
  CHECK(values(batched) == std::vector<float>{6, 8});
}

TEST_CASE("matmul of no rows is empty, and matmul over no inner elements gives zeros",
          "[autograd][matmul]") {
  CHECK(matmul(Tensor::zeros({0, 3}), Tensor::zeros({3, 2})).shape() == Shape{0, 2});
  CHECK(values(matmul(Tensor::zeros({1, 0}), Tensor::zeros({0, 2}))) == std::vector<float>{0, 0});
}

TEST_CASE("matmul gradient matches finite differences", "[autograd][matmul]") {
  const Tensor a = random_leaf({3, 5}, 1);
  const Tensor b = random_leaf({5, 2}, 2);
  check_gradient([&] { return matmul(a, b); }, {a, b});
  const Tensor deep = random_leaf({2, 3, 5}, 3);
  check_gradient([&] { return matmul(deep, b); }, {deep, b});
  const Tensor batched = random_leaf({2, 5, 1}, 4);
  check_gradient([&] { return matmul(deep, batched); }, {deep, batched});
}

TEST_CASE("matmul rejects operands that do not fit", "[autograd][matmul]") {
  QUANTRAIN_CHECK_ERROR(matmul(Tensor::zeros({4, 3}), Tensor::zeros({5, 2})),
                        ShapeError,
                        "[matmul] inner dimensions differ: lhs [4, 3], rhs [5, 2]");
  QUANTRAIN_CHECK_ERROR(matmul(Tensor::zeros({3}), Tensor::zeros({3, 2})),
                        ShapeError,
                        "[matmul] operands need two axes or more: lhs [3], rhs [3, 2]");
  QUANTRAIN_CHECK_ERROR(matmul(Tensor::zeros({2, 4, 3}), Tensor::zeros({1, 3, 2})),
                        ShapeError,
                        "[matmul] leading dimensions differ: lhs [2, 4, 3], rhs [1, 3, 2]");
  QUANTRAIN_CHECK_ERROR(
      matmul(Tensor::zeros({4, 3}), Tensor::zeros({1, 3, 2})), ShapeError, "leading");
}

}  // namespace quantrain
