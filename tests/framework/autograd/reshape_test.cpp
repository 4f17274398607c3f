#include "framework/autograd/ops/reshape.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/flatten.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::make_tensor;
using test::random_leaf;
using test::values;

TEST_CASE("reshape keeps elements and their order", "[autograd][reshape]") {
  const Tensor x = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(reshape(x, {3, 2}).shape() == Shape{3, 2});
  CHECK(values(reshape(x, {3, 2})) == values(x));
  CHECK(reshape(x, {-1}).shape() == Shape{6});
  CHECK(reshape(x, {1, -1, 2}).shape() == Shape{1, 3, 2});
  CHECK(reshape(Tensor::zeros({0, 3}), {-1, 3}).shape() == Shape{0, 3});
  CHECK(reshape(x, Shape{6}).shape() == Shape{6});
}

TEST_CASE("flatten keeps the first axis", "[autograd][flatten]") {
  CHECK(flatten(Tensor::zeros({2, 3, 4})).shape() == Shape{2, 12});
  CHECK(flatten(Tensor::zeros({2})).shape() == Shape{2, 1});
  CHECK(flatten(Tensor::zeros({0, 3, 4})).shape() == Shape{0, 12});
  QUANTRAIN_CHECK_ERROR(
      flatten(Tensor::zeros({})), ShapeError, "[flatten] a scalar has no first axis");
}

TEST_CASE("reshape and flatten gradients match finite differences", "[autograd][reshape]") {
  const Tensor x = random_leaf({2, 3, 2}, 1);
  check_gradient([&] { return reshape(x, {4, -1}); }, {x});
  check_gradient([&] { return flatten(x); }, {x});
}

TEST_CASE("reshape records the extents it was asked for", "[autograd][reshape]") {
  const Tensor y = reshape(random_leaf({2, 6}, 1), {-1, 3});
  CHECK(y.node()->type() == "reshape");
  CHECK(y.node()->attributes().integers("shape") == std::vector<int64_t>{-1, 3});
}

TEST_CASE("reshape rejects extents that do not fit", "[autograd][reshape]") {
  const Tensor x = Tensor::zeros({2, 3});
  QUANTRAIN_CHECK_ERROR(reshape(x, {4}),
                        ShapeError,
                        "[reshape] shapes [2, 3] and [4] have different numbers of elements");
  QUANTRAIN_CHECK_ERROR(reshape(x, {4, -1}),
                        ShapeError,
                        "[reshape] the extent -1 cannot be computed: x [2, 3] has 6 elements, the "
                        "product of the other extents is 4");
  QUANTRAIN_CHECK_ERROR(reshape(x, {0, -1}), ShapeError, "the extent -1 cannot be computed");
  QUANTRAIN_CHECK_ERROR(reshape(x, {-1, -1}), ShapeError, "negative extent");
}

}  // namespace quantrain
