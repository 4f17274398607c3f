#include "framework/autograd/ops/take.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "tests/framework/autograd/codes.hpp"

namespace quantrain {
namespace {

using test::activation_params;
using test::as_floats;
using test::check_gradient;
using test::make_tensor;
using test::random_codes;
using test::random_leaf;
using test::values;

}  // namespace

TEST_CASE("take chooses, repeats and reorders elements of an axis", "[autograd][take]") {
  const Tensor x = make_tensor({1, 2, 3}, {0, 1, 2, 10, 11, 12});
  using List = std::vector<float>;
  CHECK(values(take(x, -1, {2, 0, 0})) == List{2, 0, 0, 12, 10, 10});
  CHECK(take(x, 2, {2, 0, 0, 1}).shape() == Shape{1, 2, 4});
  CHECK(values(take(x, 1, {-1})) == List{10, 11, 12});
  CHECK(values(take(x, 0, {0, 0})) == List{0, 1, 2, 10, 11, 12, 0, 1, 2, 10, 11, 12});
  CHECK(take(x, 1, {}).shape() == Shape{1, 0, 3});
  CHECK(take(Tensor::zeros({0, 3}), 1, {1, 2}).shape() == Shape{0, 2});
  CHECK(take(random_leaf({1, 2}), 1, {0, 1}).node()->attributes() ==
        Attributes{{"axis", int64_t{1}}, {"indices", std::vector<int64_t>{0, 1}}});
}

TEST_CASE("take gradient matches finite differences", "[autograd][take]") {
  const Tensor x = random_leaf({2, 3, 4});
  check_gradient([&] { return take(x, 2, {3, 1, 1}); }, {x});
  check_gradient([&] { return take(x, 1, {0, 0, 2, 0}); }, {x});
  check_gradient([&] { return take(x, 0, {1}); }, {x});
}

TEST_CASE("take of codes keeps their parameters, except along the batch", "[autograd][take]") {
  const QParams params = activation_params({.bits = 8, .is_signed = false}, 0.25f, 3);
  const Tensor x = random_codes({2, 5, 6}, params, CodeStorage::kU8, 1);
  const Tensor y = take(x, 2, {5, 0, 3, 3});
  CHECK(y.kind() == ValueKind::kCodes);
  CHECK(values(y) == values(take(as_floats(x), 2, {5, 0, 3, 3})));
  CHECK(take(x, 0, {1, 0}).kind() == ValueKind::kFloat);
}

TEST_CASE("take refuses indices outside of the axis", "[autograd][take]") {
  const Tensor x = Tensor::zeros({2, 3});
  QUANTRAIN_CHECK_ERROR(
      take(x, 1, {0, 3}), ShapeError, "[take] index 3 is outside axis 1 of x [2, 3]");
  QUANTRAIN_CHECK_ERROR(take(x, 1, {-4}), ShapeError, "index -4 is outside axis 1");
  QUANTRAIN_CHECK_ERROR(take(x, 2, {0}), ShapeError, "");
}

}  // namespace quantrain
