#include "framework/autograd/ops/broadcast.hpp"

#include <vector>

#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::values;

Tensor counting(const Shape& shape) {
  Tensor x = Tensor::empty(shape);
  float* const out = x.mutable_data();
  for (int64_t i = 0; i < x.elements(); ++i) out[i] = static_cast<float>(i + 1);
  return x;
}

}  // namespace

TEST_CASE("broadcasting aligns shapes at their last axes", "[autograd][broadcast]") {
  CHECK(broadcast_shape("add", {2, 3}, {3}) == Shape{2, 3});
  CHECK(broadcast_shape("add", {2, 1, 4}, {3, 1}) == Shape{2, 3, 4});
  CHECK(broadcast_shape("add", {}, {2}) == Shape{2});
  CHECK(broadcast_shape("add", {0, 3}, {1, 3}) == Shape{0, 3});
  CHECK(broadcast_shape("add", {0}, {1}) == Shape{0});
  QUANTRAIN_CHECK_ERROR(broadcast_shape("add", {2, 3}, {2}),
                        ShapeError,
                        "[add] shapes do not broadcast: [2, 3] and [2]");
  QUANTRAIN_CHECK_ERROR(broadcast_shape("mul", {0}, {2}), ShapeError, "[mul]");
}

TEST_CASE("broadcasting repeats along absent axes and axes of one element",
          "[autograd][broadcast]") {
  CHECK(values(broadcast_to(counting({3}), {2, 3})) == std::vector<float>{1, 2, 3, 1, 2, 3});
  CHECK(values(broadcast_to(counting({2, 1}), {2, 3})) == std::vector<float>{1, 1, 1, 2, 2, 2});
  CHECK(values(broadcast_to(counting({2, 1, 2}), {2, 2, 2})) ==
        std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(values(broadcast_to(counting({}), {2, 1})) == std::vector<float>{1, 1});
  CHECK(broadcast_to(counting({1, 3}), {0, 3}).elements() == 0);
}

TEST_CASE("reduce_to sums over the elements that broadcasting repeated", "[autograd][broadcast]") {
  CHECK(values(reduce_to(counting({2, 3}), {3})) == std::vector<float>{5, 7, 9});
  CHECK(values(reduce_to(counting({2, 3}), {2, 1})) == std::vector<float>{6, 15});
  CHECK(values(reduce_to(counting({2, 3}), {})) == std::vector<float>{21});
  CHECK(values(reduce_to(counting({2, 3, 2}), {2, 1, 2})) == std::vector<float>{9, 12, 27, 30});
  CHECK(values(reduce_to(counting({2, 3, 2}), {3, 1})) == std::vector<float>{18, 26, 34});
  CHECK(reduce_to(counting({2, 3, 2}), {3, 1}).shape() == Shape{3, 1});
  CHECK(values(reduce_to(counting({0, 2}), {2})) == std::vector<float>{0, 0});
}

TEST_CASE("an elementwise kernel gets both operands in the broadcast shape",
          "[autograd][broadcast]") {
  const Tensor y = broadcast_binary("sub", kernels::sub_f32, counting({2, 1}), counting({3}));
  CHECK(y.shape() == Shape{2, 3});
  CHECK(values(y) == std::vector<float>{0, -1, -2, 1, 0, -1});
}

}  // namespace quantrain
