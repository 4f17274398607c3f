#include <cmath>
#include <limits>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/gather.hpp"
#include "framework/autograd/ops/pad.hpp"
#include "framework/autograd/ops/slice.hpp"
#include "framework/autograd/ops/upsample_nearest.hpp"
#include "framework/core/error.hpp"
#include "tests/framework/autograd/codes.hpp"

namespace quantrain {
namespace {

using test::activation_params;
using test::as_floats;
using test::check_gradient;
using test::kAwkwardSizes;
using test::make_tensor;
using test::random_codes;
using test::random_leaf;
using test::random_tensor;
using test::values;

constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

}  // namespace

TEST_CASE("slice selects the same elements as a Python slice", "[autograd][slice]") {
  const Tensor x = make_tensor({1, 6}, {0, 1, 2, 3, 4, 5});
  const auto taken = [&](const SliceOptions& options) { return values(slice(x, 1, options)); };
  using List = std::vector<float>;
  CHECK(taken({}) == List{0, 1, 2, 3, 4, 5});
  CHECK(taken({.begin = 2}) == List{2, 3, 4, 5});
  CHECK(taken({.begin = 1, .end = -1}) == List{1, 2, 3, 4});
  CHECK(taken({.begin = -2, .end = 100}) == List{4, 5});
  CHECK(taken({.begin = -100, .end = 2}) == List{0, 1});
  CHECK(taken({.begin = 1, .step = 2}) == List{1, 3, 5});
  CHECK(taken({.end = 5, .step = 3}) == List{0, 3});
  CHECK(taken({.step = -1}) == List{5, 4, 3, 2, 1, 0});
  CHECK(taken({.begin = 4, .end = 1, .step = -2}) == List{4, 2});
  CHECK(taken({.begin = 100, .end = -100, .step = -4}) == List{5, 1});
  CHECK(taken({.step = kLongest}) == List{0});
  CHECK(taken({.step = kLeast}) == List{5});
  CHECK(taken({.begin = kLeast, .end = kLongest}) == List{0, 1, 2, 3, 4, 5});
  CHECK(taken({.begin = 4, .end = 4}).empty());
  CHECK(taken({.begin = 1, .end = 4, .step = -1}).empty());
  CHECK(values(slice(make_tensor({2, 2}, {1, 2, 3, 4}), 0, {.begin = 1})) == List{3, 4});
  CHECK(slice(Tensor::zeros({2, 0, 3}), -2, {.step = -1}).shape() == Shape{2, 0, 3});
  CHECK(slice(Tensor::zeros({0, 4, 3}), 1, {.begin = 1}).shape() == Shape{0, 3, 3});
}

TEST_CASE("slice equals a plain loop at every size", "[autograd][slice]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({3, n, 2});
    const Tensor y = slice(x, 1, {.begin = n / 3, .step = 2});
    CAPTURE(n);
    REQUIRE(y.dim(1) == (n - n / 3 + 1) / 2);
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < y.dim(1); ++j) {
        for (int64_t c = 0; c < 2; ++c) {
          CHECK(y.data()[(i * y.dim(1) + j) * 2 + c] == x.data()[(i * n + n / 3 + 2 * j) * 2 + c]);
        }
      }
    }
  }
}

TEST_CASE("upsample_nearest repeats pixels", "[autograd][upsample]") {
  const Tensor y = upsample_nearest(make_tensor({1, 1, 2, 1}, {1, 2}), {2, 3});
  CHECK(y.shape() == Shape{1, 2, 6, 1});
  CHECK(values(y) == std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  const Tensor rows = upsample_nearest(make_tensor({1, 2, 2}, {1, 2, 3, 4}), {2, 1});
  CHECK(values(rows) == std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(upsample_nearest(Tensor::zeros({0, 2, 3, 1}), 2).shape() == Shape{0, 4, 6, 1});
  CHECK(upsample_nearest(Tensor::zeros({2, 0, 3, 1}), 2).shape() == Shape{2, 0, 6, 1});
  const Tensor x = random_tensor({2, 3, 5, 4});
  CHECK(values(upsample_nearest(x, 1)) == values(x));
}

TEST_CASE("slice, upsample_nearest and pad gradients match finite differences",
          "[autograd][slice][upsample][pad]") {
  const Tensor x = random_leaf({2, 3, 5, 2});
  check_gradient([&] { return slice(x, 2, {.begin = 1, .end = 4, .step = 2}); }, {x});
  check_gradient([&] { return slice(x, -1, {.step = -1}); }, {x});
  check_gradient([&] { return slice(x, 0, {.begin = 1}); }, {x});
  check_gradient([&] { return upsample_nearest(x, {2, 3}); }, {x});
  check_gradient([&] { return pad(x, {0, 1, 0, 0}, {0, 0, 2, 0}, 0.5f); }, {x});
  const Tensor rows = random_leaf({2, 3, 2});
  check_gradient([&] { return upsample_nearest(rows, {3, 1}); }, {rows});
  // An empty slice has a gradient of zeros.
  Tensor leaf = random_leaf({2, 3});
  const std::vector<Tensor> grads =
      slice(leaf, 1, {.begin = 3}).node()->backward(Tensor::zeros({2, 0}));
  CHECK(values(grads[0]) == std::vector<float>(6, 0.0f));
}

TEST_CASE("slice, upsample_nearest and pad give the same values for codes as for floats",
          "[autograd][gather][integer]") {
  for (const QType& type : test::activation_types()) {
    const QParams params = activation_params(type, 0.25f, type.is_signed ? 0 : 1);
    const Tensor x =
        random_codes({2, 5, 6, 3}, params, CodeStorage::kU8, 1).set_requires_grad(true);
    const Tensor z = as_floats(x).set_requires_grad(true);
    const std::vector<std::pair<Tensor, Tensor>> pairs = {
        {slice(x, 1, {.begin = 1, .step = 2}), slice(z, 1, {.begin = 1, .step = 2})},
        {slice(x, 3, {.step = -1}), slice(z, 3, {.step = -1})},
        {upsample_nearest(x, {2, 1}), upsample_nearest(z, {2, 1})},
        {pad(x, {0, 1, 0, 0}, {0, 2, 1, 2}), pad(z, {0, 1, 0, 0}, {0, 2, 1, 2})},
        {pad(x, {0, 1, 0, 0}, {0, 0, 0, 0}, 0.25f), pad(z, {0, 1, 0, 0}, {0, 0, 0, 0}, 0.25f)}};
    for (const auto& [y, expected] : pairs) {
      INFO(y.node()->type());
      REQUIRE(y.kind() == ValueKind::kCodes);
      CHECK(y.codes()->params == params);
      CHECK(y.codes()->operation != nullptr);
      CHECK(values(y) == values(expected));
      const Tensor grad = random_tensor(y.shape(), 9);
      CHECK(values(y.node()->backward(grad)[0]) == values(expected.node()->backward(grad)[0]));
    }
    // A result without an integer form holds floats.
    CHECK(slice(x, 0, {.begin = 1}).kind() == ValueKind::kFloat);
    CHECK(pad(x, {0, 1, 0, 0}, {0, 0, 0, 0}, 0.1f).kind() == ValueKind::kFloat);
    CHECK(pad(x, {0, 1, 0, 0}, {0, 0, 0, 0}, std::nanf("")).kind() == ValueKind::kFloat);
    CHECK(pad(x, {0, 1, 0, 0}, {0, 0, 0, 0}, 1e30f).kind() == ValueKind::kFloat);
    // Without padding, the result has the same codes.
    CHECK(pad(x, {0, 0, 0, 0}, {0, 0, 0, 0}).codes() == x.codes());
  }
}

TEST_CASE("slice and upsample_nearest refuse invalid shapes and options",
          "[autograd][slice][upsample]") {
  const Tensor x = Tensor::zeros({1, 2, 3, 1});
  QUANTRAIN_CHECK_ERROR(slice(x, 4, {}), ShapeError, "no axis 4 in [1, 2, 3, 1]");
  QUANTRAIN_CHECK_ERROR(slice(x, 1, {.step = 0}),
                        ShapeError,
                        "[slice] the step is 0, expected for example 1 (every element)");
  QUANTRAIN_CHECK_ERROR(upsample_nearest(Tensor::zeros({2, 3}), 2),
                        ShapeError,
                        "[upsample_nearest] x is neither [N, H, W, C] nor [N, L, C]: x [2, 3]");
  QUANTRAIN_CHECK_ERROR(upsample_nearest(Tensor::zeros({1, 2, 3}), 2),
                        ShapeError,
                        "x [1, 2, 3] has one axis to scale, got [2, 2]: write {2, 1}");
  QUANTRAIN_CHECK_ERROR(upsample_nearest(x, {0, 1}),
                        ShapeError,
                        "scale is [0, 1], expected whole numbers from 1 to ");
  QUANTRAIN_CHECK_ERROR(
      upsample_nearest(x, {1, kLongest}), ShapeError, "expected whole numbers from 1");
  QUANTRAIN_CHECK_ERROR(upsample_nearest(x, {(int64_t{1} << 31) - 1, 1}), ShapeError, "2^31");
}

TEST_CASE("slice and upsample_nearest record their options as attributes",
          "[autograd][slice][upsample]") {
  const Recording recording;
  const Tensor x = Tensor::zeros({1, 4, 6, 2});
  const Attributes taken = slice(x, -2, {.begin = 1, .step = 2}).node()->attributes();
  CHECK(taken.integer("axis") == 2);
  CHECK(taken.integer("begin") == 1);
  CHECK(taken.integer("step") == 2);
  CHECK(taken.integer("count") == 3);
  CHECK(upsample_nearest(x, {2, 3}).node()->attributes().integers("scale") ==
        std::vector<int64_t>{2, 3});
}

}  // namespace quantrain
