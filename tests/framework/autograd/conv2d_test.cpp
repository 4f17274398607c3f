#include "framework/autograd/ops/conv2d.hpp"

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

/// The formula in the docstring of conv2d, computed in double.
Tensor obvious_conv2d(const Tensor& x,
                      const Tensor& weight,
                      const Tensor& bias,
                      const Conv2dOptions& options) {
  const kernels::Conv2dShape s = conv2d_shape(x.shape(), weight.shape(), options);
  Tensor y = Tensor::empty({s.n, s.oh(), s.ow(), s.o});
  float* out = y.mutable_data();
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t i = 0; i < s.oh(); ++i) {
      for (int64_t j = 0; j < s.ow(); ++j) {
        for (int64_t o = 0; o < s.o; ++o) {
          double sum = bias.defined() ? static_cast<double>(bias.data()[o]) : 0.0;
          for (int64_t u = 0; u < s.kh; ++u) {
            for (int64_t v = 0; v < s.kw; ++v) {
              const int64_t h = i * s.stride_h + u * s.dilation_h - s.pad_h;
              const int64_t w = j * s.stride_w + v * s.dilation_w - s.pad_w;
              if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
              for (int64_t c = 0; c < s.group_c(); ++c) {
                const int64_t channel = o / s.group_o() * s.group_c() + c;
                const float a = x.data()[((n * s.h + h) * s.w + w) * s.c + channel];
                const float b = weight.data()[((o * s.kh + u) * s.kw + v) * s.group_c() + c];
                sum += static_cast<double>(a) * static_cast<double>(b);
              }
            }
          }
          *out++ = static_cast<float>(sum);
        }
      }
    }
  }
  return y;
}

struct Conv2dCase {
  Shape x;
  Shape weight;
  Conv2dOptions options;
};

const std::vector<Conv2dCase>& conv2d_cases() {
  static const std::vector<Conv2dCase> all = {
      {{2, 5, 4, 3}, {4, 3, 3, 3}, {.padding = 1}},
      {{1, 7, 6, 1}, {5, 3, 2, 1}, {.stride = {2, 1}, .padding = {0, 1}}},
      {{2, 4, 4, 4}, {6, 3, 3, 2}, {.stride = 2, .padding = 1, .groups = 2}},
      {{1, 5, 5, 3}, {3, 3, 3, 1}, {.padding = 1, .groups = 3}},
      {{1, 4, 5, 2}, {4, 3, 3, 1}, {.stride = {1, 2}, .groups = 2}},
      {{3, 1, 1, 5}, {2, 1, 1, 5}, {}},
      {{1, 3, 3, 2}, {2, 2, 2, 2}, {.stride = 3, .padding = 3}},  // windows outside the image
      {{2, 6, 5, 3}, {4, 3, 3, 3}, {.padding = 1, .dilation = 2}},
      {{1, 8, 7, 2}, {3, 3, 2, 2}, {.stride = {2, 3}, .padding = {2, 1}, .dilation = {2, 4}}},
      {{2, 7, 7, 4}, {6, 3, 3, 2}, {.stride = 2, .padding = 2, .groups = 2, .dilation = {3, 1}}},
      {{1, 6, 7, 3}, {3, 3, 3, 1}, {.padding = 2, .groups = 3, .dilation = 2}},
  };
  return all;
}

}  // namespace

TEST_CASE("conv2d is a cross-correlation", "[autograd][conv2d]") {
  const Tensor x = make_tensor({1, 2, 2, 1}, {1, 2, 3, 4});
  const Tensor weight = make_tensor({1, 2, 2, 1}, {10, 20, 30, 40});
  CHECK(values(conv2d(x, weight)) == std::vector<float>{300});
  CHECK(values(conv2d(x, weight, make_tensor({1}, {0.5f}), {.stride = 2, .padding = 1})) ==
        std::vector<float>{40.5f, 60.5f, 60.5f, 40.5f});
}

TEST_CASE("conv2d equals its definition computed in double", "[autograd][conv2d]") {
  for (const Conv2dCase& c : conv2d_cases()) {
    CAPTURE(c.x.back(), c.weight.back(), c.options.groups);
    const Tensor x = random_tensor(c.x, 1);
    const Tensor weight = random_tensor(c.weight, 2);
    const Tensor bias = random_tensor({c.weight[0]}, 3);
    // At most 36 products below 1 are added, and each addition rounds to float32, so the error is
    // below 36 * 36 * 2^-24.
    CHECK(test::max_difference(conv2d(x, weight, bias, c.options),
                               obvious_conv2d(x, weight, bias, c.options)) < 1e-4);
  }
}

TEST_CASE("conv2d gradient matches finite differences", "[autograd][conv2d]") {
  for (const Conv2dCase& c : conv2d_cases()) {
    CAPTURE(c.x.back(), c.weight.back(), c.options.groups);
    const Tensor x = random_leaf(c.x, 1);
    const Tensor weight = random_leaf(c.weight, 2);
    const Tensor bias = random_leaf({c.weight[0]}, 3);
    check_gradient([&] { return conv2d(x, weight, bias, c.options); }, {x, weight, bias});
  }
}

TEST_CASE("conv2d over an empty batch is empty and has gradients of 0", "[autograd][conv2d]") {
  const Tensor weight = random_leaf({2, 3, 3, 1}, 1);
  const Tensor bias = random_leaf({2}, 2);
  const Tensor y = conv2d(random_leaf({0, 5, 5, 1}, 3), weight, bias);
  CHECK(y.shape() == Shape{0, 3, 3, 2});
  const std::vector<Tensor> grads = y.node()->backward(Tensor::zeros(y.shape()));
  CHECK(grads[0].shape() == Shape{0, 5, 5, 1});
  CHECK(values(grads[1]) == std::vector<float>(18, 0.0f));
  CHECK(values(grads[2]) == std::vector<float>(2, 0.0f));
}

TEST_CASE("conv2d records its options as attributes of its node", "[autograd][conv2d]") {
  const Tensor weight = random_leaf({4, 3, 3, 1}, 1);
  const Tensor y = conv2d(
      Tensor::zeros({1, 8, 8, 2}), weight, {}, {.stride = {2, 1}, .padding = {0, 1}, .groups = 2});
  CHECK(y.node()->type() == "conv2d");
  const Attributes attributes = y.node()->attributes();
  CHECK(attributes.integers("stride") == std::vector<int64_t>{2, 1});
  CHECK(attributes.integers("padding") == std::vector<int64_t>{0, 1});
  CHECK(attributes.integer("groups") == 2);
  CHECK(attributes.integers("dilation") == std::vector<int64_t>{1, 1});
  CHECK_FALSE(y.node()->input(2).defined());
}

TEST_CASE("conv2d rejects operands that do not fit", "[autograd][conv2d]") {
  const Tensor x = Tensor::zeros({1, 5, 5, 4});
  const auto weight = [](const Shape& shape) { return Tensor::zeros(shape); };
  QUANTRAIN_CHECK_ERROR(conv2d(Tensor::zeros({5, 5, 4}), weight({2, 3, 3, 4})),
                        ShapeError,
                        "[conv2d] x is not [N, H, W, C] or weight not [O, KH, KW, C / groups]: "
                        "x [5, 5, 4], weight [2, 3, 3, 4]");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 3})),
                        ShapeError,
                        "[conv2d] channels do not fit 1 groups: x [N, H, W, C] [1, 5, 5, 4], "
                        "weight [O, KH, KW, C / groups] [2, 3, 3, 3]");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({3, 3, 3, 2}), {}, {.groups = 2}), ShapeError, "2 groups");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.groups = 0}), ShapeError, "0 groups");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 6, 3, 4})),
                        ShapeError,
                        "[conv2d] the kernel is larger than the padded image: x [1, 5, 5, 4], "
                        "kernel [6, 3], stride [1, 1], padding [0, 0]");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), Tensor::zeros({3})),
                        ShapeError,
                        "[conv2d] bias [3] is not [O] of weight");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.stride = 0}),
                        ShapeError,
                        "the stride is below 1: kernel [3, 3], stride [0, 0]");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.padding = {0, -1}}),
                        ShapeError,
                        "the padding is negative: kernel [3, 3], stride [1, 1], padding [0, -1]");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.padding = {0, kMost}}),
                        ShapeError,
                        "kernel, stride or padding is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.stride = kMost}),
                        ShapeError,
                        "kernel, stride or padding is 2^31 or more");
  QUANTRAIN_CHECK_ERROR(
      conv2d(x, weight({0, 3, 3, 4})), ShapeError, "weight has no elements: [0, 3, 3, 4]");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.dilation = {1, 3}}),
                        ShapeError,
                        "[conv2d] the kernel is larger than the padded image: x [1, 5, 5, 4], "
                        "kernel [3, 3], stride [1, 1], padding [0, 0], dilation [1, 3]");
  for (const int64_t dilation : {int64_t{0}, int64_t{-2}}) {
    QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.dilation = dilation}),
                          ShapeError,
                          "[conv2d] the dilation is below 1");
  }
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.dilation = int64_t{1} << 30}),
                        ShapeError,
                        "[conv2d] the dilated kernel spans 2^31 elements or more");
  QUANTRAIN_CHECK_ERROR(conv2d(x, weight({2, 3, 3, 4}), {}, {.dilation = kMost}),
                        ShapeError,
                        "[conv2d] the dilation is 2^31 or more");
}

}  // namespace quantrain
