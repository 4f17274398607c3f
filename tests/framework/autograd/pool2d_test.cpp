#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::make_tensor;
using test::spread_leaf;
using test::values;

const std::vector<Pool2dOptions>& all_pool2d_options() {
  static const std::vector<Pool2dOptions> all = {
      {.kernel = 2},
      {.kernel = 1},
      {.kernel = 3, .stride = 2, .padding = 1},
      {.kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 0}},
      {.kernel = {5, 4}},
  };
  return all;
}

}  // namespace

TEST_CASE("max_pool2d takes the largest element of each window", "[autograd][max_pool2d]") {
  const Tensor x = make_tensor({1, 2, 4, 1}, {1, 5, -3, -4, 2, 0, -1, -2});
  CHECK(values(max_pool2d(x, {.kernel = 2})) == std::vector<float>{5, -1});
  // Padding is never a maximum, not even among negative numbers.
  CHECK(values(max_pool2d(make_tensor({1, 1, 1, 2}, {-7, -8}),
                          {.kernel = 3, .stride = 1, .padding = 1})) == std::vector<float>{-7, -8});
  CHECK(max_pool2d(Tensor::zeros({0, 4, 4, 3}), {.kernel = 2}).shape() == Shape{0, 2, 2, 3});
}

TEST_CASE("the first of equal elements gets the gradient of max_pool2d", "[autograd][max_pool2d]") {
  Tensor x = Tensor::full({1, 2, 2, 1}, 1.0f).set_requires_grad(true);
  const Tensor y = max_pool2d(x, {.kernel = 2});
  CHECK(values(y.node()->backward(Tensor::full(y.shape(), 3.0f))[0]) ==
        std::vector<float>{3, 0, 0, 0});
}

TEST_CASE("avg_pool2d is the mean of the elements inside the image", "[autograd][avg_pool2d]") {
  const Tensor x = make_tensor({1, 2, 2, 1}, {1, 2, 3, 6});
  CHECK(values(avg_pool2d(x, {.kernel = 2})) == std::vector<float>{3});
  CHECK(values(avg_pool2d(x, {.kernel = 2, .padding = 1})) == std::vector<float>{1, 2, 3, 6});
  CHECK(values(global_avg_pool2d(x)) == std::vector<float>{3});
  CHECK(avg_pool2d(Tensor::zeros({0, 4, 4, 3}), {.kernel = 2}).shape() == Shape{0, 2, 2, 3});
}

TEST_CASE("pooling gradients match finite differences", "[autograd][pool2d]") {
  for (const Pool2dOptions& options : all_pool2d_options()) {
    CAPTURE(options.kernel.h, options.kernel.w, options.padding.h);
    const Tensor x = spread_leaf({2, 5, 4, 3}, 1);
    check_gradient([&] { return max_pool2d(x, options); }, {x});
    check_gradient([&] { return avg_pool2d(x, options); }, {x});
  }
  const Tensor x = spread_leaf({2, 3, 5, 2}, 2);
  check_gradient([&] { return global_avg_pool2d(x); }, {x});
}

TEST_CASE("2-d pools record the size, stride and padding of their windows", "[autograd][pool2d]") {
  const Tensor x = test::random_leaf({1, 6, 4, 1}, 1);
  const Tensor y = max_pool2d(x, {.kernel = {3, 2}});
  CHECK(y.node()->type() == "max_pool2d");
  CHECK(y.node()->attributes().integers("kernel") == std::vector<int64_t>{3, 2});
  CHECK(y.node()->attributes().integers("stride") == std::vector<int64_t>{3, 2});
  CHECK(y.node()->attributes().integers("padding") == std::vector<int64_t>{0, 0});
  const Tensor z = global_avg_pool2d(x);
  CHECK(z.node()->type() == "avg_pool2d");
  CHECK(z.node()->attributes().integers("kernel") == std::vector<int64_t>{6, 4});
}

TEST_CASE("a window with more than 2^16 positions has a maximum, but no gradient",
          "[autograd][max_pool2d]") {
  Tensor x = Tensor::zeros({1, 257, 256, 1});
  x.set_requires_grad(true);
  CHECK(max_pool2d(x.detach(), {.kernel = {257, 256}}).elements() == 1);
  CHECK(max_pool2d(x, {.kernel = {256, 256}, .stride = 1}).elements() == 2);
  QUANTRAIN_CHECK_ERROR(
      max_pool2d(x, {.kernel = {257, 256}}),
      ShapeError,
      "[max_pool2d] a window of 65792 elements is too large for a gradient: at most 65536");
}

TEST_CASE("pooling rejects invalid shapes and options", "[autograd][pool2d]") {
  const Tensor x = Tensor::zeros({1, 4, 4, 2});
  QUANTRAIN_CHECK_ERROR(max_pool2d(Tensor::zeros({4, 4, 2}), {.kernel = 2}),
                        ShapeError,
                        "[max_pool2d] x is not [N, H, W, C]: x [4, 4, 2]");
  QUANTRAIN_CHECK_ERROR(avg_pool2d(x, {.kernel = 0}),
                        ShapeError,
                        "[avg_pool2d] the kernel is below 1: kernel [0, 0]");
  QUANTRAIN_CHECK_ERROR(max_pool2d(x, {}), ShapeError, "the kernel is below 1");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  QUANTRAIN_CHECK_ERROR(max_pool2d(x, {.kernel = kMost, .padding = kMost - 1}),
                        ShapeError,
                        "kernel, stride or padding is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(max_pool2d(x, {.kernel = 2, .stride = {int64_t{1} << 31, 1}}),
                        ShapeError,
                        "kernel, stride or padding is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(max_pool2d(x, {.kernel = 2, .stride = {1, -1}}),
                        ShapeError,
                        "the stride is below 1: kernel [2, 2], stride [1, -1]");
  QUANTRAIN_CHECK_ERROR(
      max_pool2d(x, {.kernel = 2, .padding = -1}), ShapeError, "the padding is negative");
  QUANTRAIN_CHECK_ERROR(max_pool2d(x, {.kernel = 2, .padding = 2}),
                        ShapeError,
                        "the padding is not below the kernel");
  QUANTRAIN_CHECK_ERROR(
      avg_pool2d(x, {.kernel = {2, 5}}),
      ShapeError,
      "the kernel is larger than the padded image: x [1, 4, 4, 2], kernel [2, 5]");
  QUANTRAIN_CHECK_ERROR(max_pool2d(Tensor::zeros({2, 3, 0, 1}), {.kernel = 2, .padding = 1}),
                        ShapeError,
                        "[max_pool2d] an image without pixels: x [2, 3, 0, 1]");
  QUANTRAIN_CHECK_ERROR(
      global_avg_pool2d(Tensor::zeros({2, 3})), ShapeError, "[global_avg_pool2d] x is not");
  QUANTRAIN_CHECK_ERROR(
      global_avg_pool2d(Tensor::zeros({1, 0, 3, 2})), ShapeError, "[global_avg_pool2d]");
}

}  // namespace quantrain
