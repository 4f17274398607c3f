#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/mean.hpp"
#include "framework/autograd/ops/sum.hpp"
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

TEST_CASE("sum adds up all elements at every size", "[autograd][sum]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({n});
    double expected = 0.0;
    for (const float value : values(x)) expected += double{value};
    CAPTURE(n);
    // At most 65 values below 1 are added, so the rounding error is far below 1e-5.
    CHECK(sum(x).item() == test::Approx(expected).margin(1e-5));
    CHECK(sum(x).shape() == Shape{});
  }
}

TEST_CASE("sum and mean reduce one axis and keep it on request", "[autograd][sum][mean]") {
  const Tensor x = make_tensor({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(values(sum(x, 1)) == std::vector<float>{9, 12, 27, 30});
  CHECK(sum(x, 1).shape() == Shape{2, 2});
  CHECK(sum(x, 1, true).shape() == Shape{2, 1, 2});
  CHECK(values(sum(x, -1)) == std::vector<float>{3, 7, 11, 15, 19, 23});
  CHECK(values(sum(x, 0)) == std::vector<float>{8, 10, 12, 14, 16, 18});
  CHECK(values(mean(x, -2)) == std::vector<float>{3, 4, 9, 10});
  CHECK(mean(x, 0, true).shape() == Shape{1, 3, 2});
  CHECK(mean(x).item() == 6.5f);
}

TEST_CASE("sum and mean along an axis agree with plain loops at every size",
          "[autograd][sum][mean]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({2, n, 3}, 7);
    const std::vector<float> v = values(x);
    const std::vector<float> y = values(sum(x, 1));
    const std::vector<float> z = n > 0 ? values(mean(x, 1)) : std::vector<float>(6);
    CAPTURE(n);
    for (int64_t o = 0; o < 2; ++o) {
      for (int64_t i = 0; i < 3; ++i) {
        double expected = 0.0;
        for (int64_t k = 0; k < n; ++k)
          expected += double{v[static_cast<size_t>((o * n + k) * 3 + i)]};
        // As above, at most 65 values below 1 are added.
        CHECK(y[static_cast<size_t>(o * 3 + i)] == test::Approx(expected).margin(1e-5));
        const double average = expected / static_cast<double>(std::max<int64_t>(n, 1));
        CHECK(z[static_cast<size_t>(o * 3 + i)] == test::Approx(average).margin(1e-5));
      }
    }
  }
}

TEST_CASE("sum and mean gradients match finite differences", "[autograd][sum][mean]") {
  const Tensor x = random_leaf({3, 4, 5});
  check_gradient([&] { return sum(x); }, {x});
  check_gradient([&] { return mean(x); }, {x});
  for (const int axis : {0, 1, 2, -3}) {
    check_gradient([&] { return sum(x, axis); }, {x});
    check_gradient([&] { return mean(x, axis, true); }, {x});
  }
  const Tensor empty = random_leaf({2, 0});
  check_gradient([&] { return sum(empty, 1); }, {empty});
}

TEST_CASE("the sum of no elements is 0, and their mean is an error", "[autograd][sum][mean]") {
  const Tensor x = Tensor::zeros({2, 0});
  CHECK(sum(x).item() == 0.0f);
  CHECK(values(sum(x, 1)) == std::vector<float>{0, 0});
  CHECK(mean(x, 0).shape() == Shape{0});
  QUANTRAIN_CHECK_ERROR(mean(x), ShapeError, "[mean] no elements to average in shape [2, 0]");
  QUANTRAIN_CHECK_ERROR(mean(x, 1), ShapeError, "[mean] no elements to average in shape [2, 0]");
}

TEST_CASE("sum and mean refuse an axis that does not exist", "[autograd][sum][mean]") {
  const Tensor x = Tensor::zeros({2, 3});
  QUANTRAIN_CHECK_ERROR(sum(x, 2), ShapeError, "no axis 2 in [2, 3]");
  QUANTRAIN_CHECK_ERROR(mean(x, -3), ShapeError, "no axis -3 in [2, 3]");
}

TEST_CASE("sum and mean record which axes they reduce", "[autograd][sum][mean]") {
  const Recording recording;
  const Tensor x = Tensor::zeros({2, 3});
  CHECK(sum(x).node()->attributes().integers("axes") == std::vector<int64_t>{0, 1});
  const Attributes attributes = mean(x, -1, true).node()->attributes();
  CHECK(attributes.integers("axes") == std::vector<int64_t>{1});
  CHECK(attributes.integer("keepdims") == 1);
}

}  // namespace quantrain
