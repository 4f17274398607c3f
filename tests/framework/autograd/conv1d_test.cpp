#include "framework/autograd/ops/conv1d.hpp"

#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

/// The formula in the docstring of conv1d, computed in double.
Tensor obvious_conv1d(const Tensor& x,
                      const Tensor& weight,
                      const Tensor& bias,
                      const Conv1dOptions& options) {
  const int64_t n = x.dim(0);
  const int64_t length = x.dim(1);
  const int64_t c = x.dim(2);
  const int64_t outputs = weight.dim(0);
  const int64_t kernel = weight.dim(1);
  const int64_t group_c = weight.dim(2);
  const int64_t span = (kernel - 1) * options.dilation + 1;
  const int64_t y_length = (length + 2 * options.padding - span) / options.stride + 1;
  std::vector<float> y;
  for (int64_t i = 0; i < n * y_length; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = bias.defined() ? static_cast<double>(bias.data()[o]) : 0.0;
      for (int64_t t = 0; t < kernel; ++t) {
        const int64_t l = i % y_length * options.stride + t * options.dilation - options.padding;
        if (l < 0 || l >= length) continue;
        for (int64_t k = 0; k < group_c; ++k) {
          const int64_t channel = o / (outputs / options.groups) * group_c + k;
          sum += static_cast<double>(x.data()[(i / y_length * length + l) * c + channel]) *
                 static_cast<double>(weight.data()[(o * kernel + t) * group_c + k]);
        }
      }
      y.push_back(static_cast<float>(sum));
    }
  }
  return make_tensor({n, y_length, outputs}, y);
}

struct Conv1dCase {
  Shape x;
  Shape weight;
  Conv1dOptions options;
};

const std::vector<Conv1dCase>& conv1d_cases() {
  static const std::vector<Conv1dCase> all = {
      {{2, 7, 3}, {4, 3, 3}, {.padding = 1}},
      {{1, 9, 1}, {5, 4, 1}, {.stride = 2, .padding = 1}},
      {{2, 8, 4}, {6, 3, 2}, {.stride = 3, .padding = 2, .groups = 2}},
      {{2, 7, 3}, {3, 3, 1}, {.padding = 1, .groups = 3}},  // depthwise
      {{1, 9, 2}, {4, 3, 1}, {.groups = 2, .dilation = 2}},
      {{2, 11, 3}, {3, 3, 1}, {.stride = 2, .padding = 4, .groups = 3, .dilation = 4}},
      {{2, 12, 5}, {3, 4, 5}, {.padding = 3, .dilation = 3}},
      {{3, 1, 5}, {2, 1, 5}, {}},
      {{1, 1, 1}, {1, 3, 1}, {.padding = 1}},
      {{1, 3, 2}, {2, 2, 2}, {.stride = 3, .padding = 3}},  // windows outside the signal
  };
  return all;
}

}  // namespace

TEST_CASE("conv1d is a cross-correlation", "[autograd][conv1d]") {
  const Tensor x = make_tensor({1, 4, 1}, {1, 2, 3, 4});
  const Tensor weight = make_tensor({1, 2, 1}, {10, 1});
  CHECK(values(conv1d(x, weight)) == std::vector<float>{12, 23, 34});
  CHECK(values(conv1d(x, weight, make_tensor({1}, {0.5f}), {.stride = 2, .padding = 1})) ==
        std::vector<float>{1.5f, 23.5f, 40.5f});
  CHECK(values(conv1d(x, weight, {}, {.dilation = 3})) == std::vector<float>{14});
}

TEST_CASE("conv1d equals its definition computed in double", "[autograd][conv1d]") {
  for (const Conv1dCase& c : conv1d_cases()) {
    CAPTURE(c.x, c.weight, c.options.groups, c.options.dilation);
    const Tensor x = random_tensor(c.x, 1);
    const Tensor weight = random_tensor(c.weight, 2);
    const Tensor bias = random_tensor({c.weight[0]}, 3);
    // The bias and at most 20 products are added, each below 1. Each addition rounds to float32, so
    // the error is below 21 * 21 * 2^-24.
    CHECK(test::max_difference(conv1d(x, weight, bias, c.options),
                               obvious_conv1d(x, weight, bias, c.options)) < 3e-5);
  }
}

TEST_CASE("conv1d gradient matches finite differences", "[autograd][conv1d]") {
  for (const Conv1dCase& c : conv1d_cases()) {
    CAPTURE(c.x, c.weight, c.options.groups, c.options.dilation);
    const Tensor x = random_leaf(c.x, 1);
    const Tensor weight = random_leaf(c.weight, 2);
    const Tensor bias = random_leaf({c.weight[0]}, 3);
    check_gradient([&] { return conv1d(x, weight, bias, c.options); }, {x, weight, bias});
  }
}

TEST_CASE("conv1d over an empty batch is empty and has gradients of 0", "[autograd][conv1d]") {
  const Tensor weight = random_leaf({2, 3, 1}, 1);
  const Tensor y = conv1d(random_leaf({0, 5, 1}, 3), weight);
  CHECK(y.shape() == Shape{0, 3, 2});
  const std::vector<Tensor> grads = y.node()->backward(Tensor::zeros(y.shape()));
  CHECK(grads[0].shape() == Shape{0, 5, 1});
  CHECK(values(grads[1]) == std::vector<float>(6, 0.0f));
}

TEST_CASE("conv1d records its options as attributes of its node", "[autograd][conv1d]") {
  const Tensor y = conv1d(Tensor::zeros({1, 8, 2}),
                          random_leaf({4, 3, 1}, 1),
                          {},
                          {.stride = 2, .padding = 1, .groups = 2, .dilation = 3});
  CHECK(y.node()->type() == "conv1d");
  const Attributes attributes = y.node()->attributes();
  CHECK(attributes.integers("stride") == std::vector<int64_t>{2});
  CHECK(attributes.integers("padding") == std::vector<int64_t>{1});
  CHECK(attributes.integer("groups") == 2);
  CHECK(attributes.integers("dilation") == std::vector<int64_t>{3});
}

TEST_CASE("conv1d rejects operands that do not fit", "[autograd][conv1d]") {
  const Tensor x = Tensor::zeros({1, 5, 4});
  const auto weight = [](const Shape& shape) { return Tensor::zeros(shape); };
  QUANTRAIN_CHECK_ERROR(conv1d(Tensor::zeros({5, 4}), weight({2, 3, 4})),
                        ShapeError,
                        "[conv1d] x is not [N, L, C] or weight not [O, K, C / groups]: x [5, 4], "
                        "weight [2, 3, 4]");
  QUANTRAIN_CHECK_ERROR(
      conv1d(x, weight({2, 3, 3, 4})), ShapeError, "weight not [O, K, C / groups]");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 3})),
                        ShapeError,
                        "[conv1d] channels do not fit 1 groups: x [N, L, C] [1, 5, 4], weight "
                        "[O, K, C / groups] [2, 3, 3]");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({3, 3, 2}), {}, {.groups = 2}), ShapeError, "2 groups");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 4}), {}, {.groups = 0}), ShapeError, "0 groups");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 6, 4})),
                        ShapeError,
                        "[conv1d] the kernel is larger than the padded signal: x [1, 5, 4], "
                        "kernel 6, stride 1, padding 0");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 4}), {}, {.dilation = 3}),
                        ShapeError,
                        "x [1, 5, 4], kernel 3, stride 1, padding 0, dilation 3");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 4}), Tensor::zeros({3})),
                        ShapeError,
                        "[conv1d] bias [3] is not [O] of weight");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 4}), {}, {.stride = 0}),
                        ShapeError,
                        "[conv1d] the stride is below 1: kernel 3, stride 0, padding 0");
  QUANTRAIN_CHECK_ERROR(
      conv1d(x, weight({2, 3, 4}), {}, {.padding = -1}), ShapeError, "the padding is negative");
  QUANTRAIN_CHECK_ERROR(
      conv1d(x, weight({2, 3, 4}), {}, {.dilation = 0}), ShapeError, "the dilation is below 1");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 4}), {}, {.padding = kMost}),
                        ShapeError,
                        "kernel, stride or padding is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(conv1d(x, weight({2, 3, 4}), {}, {.dilation = kMost}),
                        ShapeError,
                        "the dilation is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(
      conv1d(x, weight({2, 0, 4})), ShapeError, "weight has no elements: [2, 0, 4]");
}

}  // namespace quantrain
