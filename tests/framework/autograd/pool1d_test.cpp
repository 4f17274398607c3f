#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/avg_pool1d.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool1d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/autograd/ops/reshape.hpp"
#include "framework/core/error.hpp"
#include "tests/framework/autograd/codes.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::make_tensor;
using test::spread_leaf;
using test::values;

const std::vector<Pool1dOptions>& all_pool1d_options() {
  static const std::vector<Pool1dOptions> all = {
      {.kernel = 2}, {.kernel = 1}, {.kernel = 3, .stride = 2, .padding = 1}, {.kernel = 7}};
  return all;
}

}  // namespace

TEST_CASE("1-d pools take the maximum or the mean of each window", "[autograd][pool1d]") {
  const Tensor x = make_tensor({1, 4, 1}, {1, 5, -3, -4});
  CHECK(values(max_pool1d(x, {.kernel = 2})) == std::vector<float>{5, -3});
  CHECK(values(avg_pool1d(x, {.kernel = 2})) == std::vector<float>{3, -3.5f});
  // Padding is never a maximum, and does not count in a mean.
  CHECK(values(max_pool1d(x, {.kernel = 3, .stride = 3, .padding = 1})) ==
        std::vector<float>{5, -3});
  CHECK(values(avg_pool1d(x, {.kernel = 3, .stride = 3, .padding = 1})) ==
        std::vector<float>{3, -3.5f});
  CHECK(global_max_pool1d(x).shape() == Shape{1, 1, 1});
  CHECK(values(global_max_pool1d(x)) == std::vector<float>{5});
  CHECK(values(global_avg_pool1d(x)) == std::vector<float>{-0.25f});
  CHECK(max_pool1d(Tensor::zeros({0, 4, 3}), {.kernel = 2}).shape() == Shape{0, 2, 3});
  CHECK(global_avg_pool1d(Tensor::zeros({0, 4, 3})).shape() == Shape{0, 1, 3});
}

TEST_CASE("gradients of 1-d pools match finite differences", "[autograd][pool1d]") {
  for (const Pool1dOptions& options : all_pool1d_options()) {
    CAPTURE(options.kernel, options.padding);
    const Tensor x = spread_leaf({2, 7, 3}, 1);
    check_gradient([&] { return max_pool1d(x, options); }, {x});
    check_gradient([&] { return avg_pool1d(x, options); }, {x});
  }
  const Tensor x = spread_leaf({2, 5, 2}, 2);
  check_gradient([&] { return global_avg_pool1d(x); }, {x});
  check_gradient([&] { return global_max_pool1d(x); }, {x});
}

TEST_CASE("1-d pools of codes equal 2-d pools of images with one row",
          "[autograd][pool1d][integer]") {
  const Tensor x = test::random_codes(
      {2, 7, 3}, test::activation_params({8, false, false}, 0.1f, 128), CodeStorage::kU8, 1);
  const Tensor row = reshape(x, {2, 1, 7, 3});
  for (const Pool1dOptions& options : all_pool1d_options()) {
    const Pool2dOptions in_row{.kernel = {1, options.kernel},
                               .stride = {1, options.stride},
                               .padding = {0, options.padding}};
    const Tensor largest = max_pool1d(x, options);
    CHECK(largest.kind() == ValueKind::kCodes);
    CHECK(values(largest) == values(max_pool2d(row, in_row)));
    const Tensor mean = avg_pool1d(x, options);
    CHECK(mean.kind() == ValueKind::kWaiting);
    CHECK(values(mean) == values(avg_pool2d(row, in_row)));
  }
}

TEST_CASE("1-d pools record the size, stride and padding of their windows", "[autograd][pool1d]") {
  const Tensor x = test::random_leaf({1, 6, 1}, 1);
  const Tensor y = max_pool1d(x, {.kernel = 3});
  CHECK(y.node()->type() == "max_pool1d");
  CHECK(y.node()->attributes().integers("kernel") == std::vector<int64_t>{3});
  CHECK(y.node()->attributes().integers("stride") == std::vector<int64_t>{3});
  CHECK(y.node()->attributes().integers("padding") == std::vector<int64_t>{0});
  const Tensor z = global_avg_pool1d(x);
  CHECK(z.node()->type() == "avg_pool1d");
  CHECK(z.node()->traits().layer == "AvgPool1d");
  CHECK(z.node()->attributes().integers("kernel") == std::vector<int64_t>{6});
}

TEST_CASE("1-d pools reject invalid shapes and options", "[autograd][pool1d]") {
  const Tensor x = Tensor::zeros({1, 4, 2});
  QUANTRAIN_CHECK_ERROR(max_pool1d(Tensor::zeros({1, 4, 4, 2}), {.kernel = 2}),
                        ShapeError,
                        "[max_pool1d] x is not [N, L, C]: x [1, 4, 4, 2]");
  QUANTRAIN_CHECK_ERROR(
      avg_pool1d(x, {.kernel = 0}), ShapeError, "[avg_pool1d] the kernel is below 1: kernel 0");
  QUANTRAIN_CHECK_ERROR(max_pool1d(x, {.kernel = 2, .stride = -1}),
                        ShapeError,
                        "[max_pool1d] the stride is below 1: kernel 2, stride -1, padding 0");
  QUANTRAIN_CHECK_ERROR(
      max_pool1d(x, {.kernel = 2, .padding = -1}), ShapeError, "the padding is negative");
  QUANTRAIN_CHECK_ERROR(max_pool1d(x, {.kernel = 2, .padding = 2}),
                        ShapeError,
                        "the padding is not below the kernel: kernel 2, stride 2, padding 2");
  QUANTRAIN_CHECK_ERROR(avg_pool1d(x, {.kernel = 5}),
                        ShapeError,
                        "[avg_pool1d] the kernel is larger than the padded signal: x [1, 4, 2], "
                        "kernel 5, stride 5, padding 0");
  QUANTRAIN_CHECK_ERROR(max_pool1d(Tensor::zeros({2, 0, 3}), {.kernel = 2, .padding = 1}),
                        ShapeError,
                        "[max_pool1d] a signal of length 0: x [2, 0, 3]");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  QUANTRAIN_CHECK_ERROR(max_pool1d(x, {.kernel = kMost, .padding = kMost - 1}),
                        ShapeError,
                        "kernel, stride or padding is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(global_avg_pool1d(Tensor::zeros({2, 3})),
                        ShapeError,
                        "[global_avg_pool1d] x is not [N, L, C] with L of at least 1: [2, 3]");
  QUANTRAIN_CHECK_ERROR(
      global_max_pool1d(Tensor::zeros({1, 0, 2})), ShapeError, "[global_max_pool1d]");
}

}  // namespace quantrain
