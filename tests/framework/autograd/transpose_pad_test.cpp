#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/pad.hpp"
#include "framework/autograd/ops/transpose.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::kAwkwardSizes;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

}  // namespace

TEST_CASE("transpose moves axes", "[autograd][transpose]") {
  const Tensor x = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(values(transpose(x)) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(transpose(x).shape() == Shape{3, 2});
  const Tensor images = random_tensor({2, 4, 5, 3});
  const Tensor planes = transpose(images, {0, 3, 1, 2});
  CHECK(planes.shape() == Shape{2, 3, 4, 5});
  CHECK(planes.data()[((1 * 3 + 2) * 4 + 3) * 5 + 1] ==
        images.data()[((1 * 4 + 3) * 5 + 1) * 3 + 2]);
  CHECK(values(transpose(planes, {0, 2, 3, -3})) == values(images));
  CHECK(values(transpose(Tensor::full({}, 3.0f))) == std::vector<float>{3});
}

TEST_CASE("transpose twice is the identity at every size", "[autograd][transpose]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({3, n});
    CAPTURE(n);
    CHECK(values(transpose(transpose(x))) == values(x));
  }
}

TEST_CASE("transpose gradient matches finite differences", "[autograd][transpose]") {
  const Tensor x = random_leaf({2, 3, 4});
  check_gradient([&] { return transpose(x, {1, 2, 0}); }, {x});
  check_gradient([&] { return transpose(x); }, {x});
}

TEST_CASE("transpose refuses axes that are not a permutation", "[autograd][transpose]") {
  const Tensor x = Tensor::zeros({2, 3});
  QUANTRAIN_CHECK_ERROR(transpose(x, {0}),
                        ShapeError,
                        "[transpose] perm has 1 axes, expected each axis of [2, 3] once");
  QUANTRAIN_CHECK_ERROR(transpose(x, {1, -1}), ShapeError, "axis 1 of [2, 3] is named twice");
  QUANTRAIN_CHECK_ERROR(transpose(x, {0, 2}), ShapeError, "no axis 2 in [2, 3]");
}

TEST_CASE("pad surrounds a tensor with constants", "[autograd][pad]") {
  const Tensor x = make_tensor({1, 2}, {1, 2});
  CHECK(values(pad(x, {1, 0}, {0, 2}, 9.0f)) == std::vector<float>{9, 9, 9, 9, 1, 2, 9, 9});
  CHECK(values(pad(Tensor::zeros({0}), {1}, {1}, 5.0f)) == std::vector<float>{5, 5});
  CHECK(values(pad(Tensor::full({}, 4.0f), {}, {})) == std::vector<float>{4});
  const Tensor image = pad2d(make_tensor({1, 1, 1, 2}, {3, 4}), {1, 0});
  CHECK(image.shape() == Shape{1, 3, 1, 2});
  CHECK(values(image) == std::vector<float>{0, 0, 3, 4, 0, 0});
}

TEST_CASE("pad keeps the inner elements at every size", "[autograd][pad]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({2, n});
    const Tensor y = pad(x, {1, 3}, {1, 2}, -7.0f);
    CAPTURE(n);
    REQUIRE(y.shape() == Shape{4, n + 5});
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < n + 5; ++c) {
        const bool inside = r >= 1 && r < 3 && c >= 3 && c < n + 3;
        CHECK(y.data()[r * (n + 5) + c] == (inside ? x.data()[(r - 1) * n + c - 3] : -7.0f));
      }
    }
  }
}

TEST_CASE("pad gradient matches finite differences", "[autograd][pad]") {
  const Tensor x = random_leaf({2, 2, 3, 2});
  check_gradient([&] { return pad2d(x, {1, 2}, 0.5f); }, {x});
  check_gradient([&] { return pad(x, {1, 0, 0, 2}, {0, 3, 1, 0}); }, {x});
}

TEST_CASE("pad refuses extents that do not fit", "[autograd][pad]") {
  const Tensor x = Tensor::zeros({2, 3});
  QUANTRAIN_CHECK_ERROR(
      pad(x, {1}, {1, 1}),
      ShapeError,
      "[pad] needs a padding before and after each axis of [2, 3], got 1 before and 2 after");
  QUANTRAIN_CHECK_ERROR(pad(x, {0, -1}, {0, 0}), ShapeError, "padding of axis 1 is negative: -1");
  QUANTRAIN_CHECK_ERROR(pad2d(x, 1), ShapeError, "needs [N, H, W, C], got shape [2, 3]");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  QUANTRAIN_CHECK_ERROR(
      pad(x, {0, kMost}, {0, kMost}),
      ShapeError,
      "[pad] axis 1 of [2, 3] is too long with padding 9223372036854775807 and 9223");
  QUANTRAIN_CHECK_ERROR(pad(x, {kMost - 1, 0}, {0, 0}), ShapeError, "axis 0 of [2, 3] is too long");
  QUANTRAIN_CHECK_ERROR(pad(x, {kMost - 2, 0}, {0, 0}), ShapeError, "too many elements");
}

TEST_CASE("transpose and pad record their options as attributes", "[autograd][transpose][pad]") {
  const Recording recording;
  const Tensor x = Tensor::zeros({2, 3});
  CHECK(transpose(x).node()->attributes().integers("perm") == std::vector<int64_t>{1, 0});
  const Attributes attributes = pad(x, {1, 2}, {3, 4}, 0.5f).node()->attributes();
  CHECK(attributes.integers("pads") == std::vector<int64_t>{1, 2, 3, 4});
  CHECK(attributes.real("value") == 0.5);
}

}  // namespace quantrain
