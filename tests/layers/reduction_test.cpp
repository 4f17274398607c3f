#include "layers/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::values;

TEST_CASE("Mean and Max reduce axes of each sample", "[layers][reduction]") {
  Tensor x = Tensor::empty({2, 3, 4, 5});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data()[i] = static_cast<float>(i * 37 % 64 - 32);
  struct Case {
    std::vector<int> axes;
    Shape shape;
    Shape kept;
  };
  const Case cases[] = {{{1}, {2, 4, 5}, {2, 1, 4, 5}},
                        {{2}, {2, 3, 5}, {2, 3, 1, 5}},
                        {{-1}, {2, 3, 4}, {2, 3, 4, 1}},
                        {{1, 2}, {2, 5}, {2, 1, 1, 5}},
                        {{-1, 2}, {2, 3}, {2, 3, 1, 1}},
                        {{1, 2, 3}, {2}, {2, 1, 1, 1}}};
  for (const Case& c : cases) {
    CAPTURE(c.shape);
    // Each element of x belongs to the result that has the same indices on the axes that are kept.
    std::vector<float> most(static_cast<size_t>(c.shape.elements()), -1e9f);
    std::vector<double> sums(most.size(), 0.0);
    for (int64_t i = 0; i < x.elements(); ++i) {
      int64_t place = 0;
      int64_t rest = i;
      int64_t stride = 1;
      for (int axis = 3; axis >= 0; --axis) {
        if (c.kept[axis] == x.dim(axis)) {
          place += rest % x.dim(axis) * stride;
          stride *= x.dim(axis);
        }
        rest /= x.dim(axis);
      }
      most[static_cast<size_t>(place)] = std::max(most[static_cast<size_t>(place)], x.data()[i]);
      sums[static_cast<size_t>(place)] += x.data()[i];
    }
    const Tensor mean = Mean{c.axes}(x);
    const Tensor max = Max{c.axes}(x);
    CHECK(mean.shape() == c.shape);
    CHECK(max.shape() == c.shape);
    CHECK(Mean{c.axes, {.keepdim = true}}(x).shape() == c.kept);
    CHECK(Max{c.axes, {.keepdim = true}}(x).shape() == c.kept);
    const auto count = static_cast<double>(x.elements() / c.shape.elements());
    double worst = 0.0;
    bool largest = true;
    for (size_t i = 0; i < most.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      worst = std::max(worst, std::abs(mean.data()[at] - sums[i] / count));
      largest = largest && max.data()[at] == most[i];
    }
    CHECK(worst < 1e-5);  // rounding to float32; no mean exceeds 32 in magnitude
    CHECK(largest);
  }
  // The gradient of a mean of K elements is 1 / K everywhere. The gradient of a maximum is 1 at the
  // first of the largest elements, and 0 elsewhere.
  const float values[] = {1.0f, 3.0f, 3.0f, 2.0f};
  Tensor leaf = Tensor::from({1, 4}, values).set_requires_grad(true);
  sum(Mean{1}(leaf)).backward();
  CHECK(quantrain::test::values(leaf.grad()) == std::vector<float>(4, 0.25f));
  leaf.zero_grad();
  sum(Max{-1}(leaf)).backward();
  CHECK(quantrain::test::values(leaf.grad()) == std::vector<float>{0.0f, 1.0f, 0.0f, 0.0f});
}

TEST_CASE("Mean and Max refuse the batch axis, axes with a gap, and nothing to reduce",
          "[layers][reduction]") {
  const Tensor x = Tensor::zeros({2, 3, 4, 5});
  QUANTRAIN_CHECK_ERROR(
      Mean{0}, ShapeError, "[Mean] axis 0 is the batch: a layer works on each sample");
  QUANTRAIN_CHECK_ERROR((Max{{0, 1}}), ShapeError, "[Max] axis 0 is the batch");
  QUANTRAIN_CHECK_ERROR(
      Mean{std::vector<int>()}, ShapeError, "[Mean] there is no axis to reduce: name one");
  QUANTRAIN_CHECK_ERROR(Max{-4}(x), ShapeError, "[Max] axis -4 is the batch");
  QUANTRAIN_CHECK_ERROR(Max{4}(x), ShapeError, "[Max] there is no axis 4: x [2, 3, 4, 5]");
  QUANTRAIN_CHECK_ERROR(
      (Mean{{-1, -5}}(x)), ShapeError, "[Mean] there is no axis -5: x [2, 3, 4, 5]");
  QUANTRAIN_CHECK_ERROR((Mean{{1, 1}}(x)), ShapeError, "[Mean] axis 1 is listed twice");
  QUANTRAIN_CHECK_ERROR((Max{{2, 1, -2}}(x)), ShapeError, "[Max] axis 2 is listed twice");
  QUANTRAIN_CHECK_ERROR((Mean{{1, 3}}(x)),
                        ShapeError,
                        "[Mean] axes 1 and 3 are not next to each other: use a layer for each, "
                        "with keepdim in the first");
  QUANTRAIN_CHECK_ERROR(
      Mean{1}(Tensor::zeros({2, 0, 5})), ShapeError, "[Mean] no elements to reduce: x [2, 0, 5]");
  CHECK(Max{1}(Tensor::zeros({0, 3, 5})).shape() == Shape{0, 5});
}

}  // namespace quantrain
