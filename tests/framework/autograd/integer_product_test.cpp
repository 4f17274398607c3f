#include <algorithm>
#include <limits>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/batch_norm.hpp"
#include "framework/autograd/ops/conv2d.hpp"
#include "framework/autograd/ops/linear.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/autograd/ops/operators.hpp"
#include "framework/autograd/ops/reshape.hpp"
#include "framework/autograd/ops/sum.hpp"
#include "framework/core/error.hpp"
#include "tests/framework/autograd/codes.hpp"

namespace quantrain {
namespace {

using test::activation_params;
using test::as_floats;
using test::code_values;
using test::random_codes;
using test::values;

// These scales are powers of two, so float32 products and sums are exact as long as the integer
// sums stay below 2^24. Therefore the integer path must equal the float path exactly.
constexpr float kScaleX = 0x1p-6f;
constexpr float kScaleW = 0x1p-5f;

QParams weight_params(int bits, int64_t outputs) {
  QParams params{{bits, true, true}, 0, {}, {}};
  for (int64_t o = 0; o < outputs; ++o) {
    params.scale.push_back(o % 2 == 0 ? kScaleW : kScaleW / 4);
    params.zero_point.push_back(0);
  }
  return params;
}

Tensor random_weight(const Shape& shape, int bits, uint64_t seed) {
  return random_codes(shape, weight_params(bits, shape[0]), CodeStorage::kS8, seed);
}

/// A bias whose elements are multiples of their channel's scale_x * scale_w.
Tensor exact_bias(int64_t outputs) {
  Tensor bias = Tensor::empty({outputs});
  float* const out = bias.mutable_data();
  for (int64_t o = 0; o < outputs; ++o) out[o] = static_cast<float>(3 * o - 4) * kScaleX * kScaleW;
  return bias;
}

WaitingResult::Sums sums_of(const Tensor& y) {
  REQUIRE(y.kind() == ValueKind::kWaiting);
  REQUIRE(TensorAccess::waiting(y)->sums());
  return *TensorAccess::waiting(y)->sums();
}

/// The unclamped code of each accumulator by (8), with the zero point added.
std::vector<int64_t> rescaled(const Tensor& x, const QParams& y) {
  const WaitingResult::Sums sums = sums_of(x);
  std::vector<int64_t> codes;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double scale = sums.scale[static_cast<size_t>(i) % sums.scale.size()];
    const Multiplier m = make_multiplier(scale / static_cast<double>(y.scale[0]));
    codes.push_back(rounding_shift(int64_t{sums.values[i]} * m.m0, m.shift) + y.zero_point[0]);
  }
  return codes;
}

}  // namespace

TEST_CASE("linear of codes computes the integer sums of the deployed layer",
          "[autograd][linear][integer]") {
  for (const QType& type : test::activation_types()) {
    for (const int64_t in : {1, 7, 64, 65}) {
      const int32_t zero = type.is_signed ? -3 % (type.qmax() + 1) : type.qmax() / 2;
      const Tensor x =
          random_codes({3, in}, activation_params(type, kScaleX, zero), CodeStorage::kU8, 1);
      const Tensor weight = random_weight({5, in}, 8, 2);
      const Tensor bias = exact_bias(5);
      const Tensor y = linear(x, weight, bias);
      const WaitingResult::Sums sums = sums_of(y);
      CHECK(sums.scale.size() == 5);
      const std::vector<int32_t> xs = code_values(x);
      const std::vector<int32_t> ws = code_values(weight);
      for (int64_t i = 0; i < 15; ++i) {
        const float scale = weight.codes()->params.scale[static_cast<size_t>(i % 5)];
        int32_t sum = quantize_bias(bias.data()[i % 5], kScaleX, scale);
        for (int64_t k = 0; k < in; ++k) {
          sum += (xs[static_cast<size_t>(i / 5 * in + k)] - zero) *
                 ws[static_cast<size_t>(i % 5 * in + k)];
        }
        REQUIRE(sums.values[i] == sum);
      }
      CHECK(values(y) == values(linear(as_floats(x), as_floats(weight), bias)));
    }
  }
}

TEST_CASE("conv2d of codes equals the float convolution if float sums are exact",
          "[autograd][conv2d][integer]") {
  struct Case {
    Shape x;
    Shape weight;
    Conv2dOptions options;
  };
  const std::vector<Case> cases = {
      {{2, 5, 4, 3}, {4, 3, 3, 3}, {.padding = 1}},
      {{1, 7, 6, 1}, {5, 3, 2, 1}, {.stride = {2, 1}, .padding = {0, 1}}},
      {{2, 4, 4, 4}, {6, 3, 3, 2}, {.stride = 2, .padding = 1, .groups = 2}},
      {{1, 5, 5, 3}, {3, 3, 3, 1}, {.padding = 1, .groups = 3}},
      {{3, 1, 1, 17}, {2, 1, 1, 17}, {}},
  };
  for (const Case& c : cases) {
    for (const QType& type : test::activation_types()) {
      const QParams params = activation_params(type, kScaleX, type.is_signed ? -1 : 1);
      const Tensor x = random_codes(c.x, params, CodeStorage::kU8, 1);
      const Tensor weight = random_weight(c.weight, 4, 2);
      const Tensor bias = exact_bias(c.weight[0]);
      const Tensor y = conv2d(x, weight, bias, c.options);
      CHECK(static_cast<int64_t>(sums_of(y).scale.size()) == c.weight[0]);
      CHECK(values(y) == values(conv2d(as_floats(x), as_floats(weight), bias, c.options)));
      CHECK(values(conv2d(x, weight, {}, c.options)) ==
            values(conv2d(as_floats(x), as_floats(weight), {}, c.options)));
    }
  }
}

TEST_CASE("accumulators requantize by (8), channel by channel", "[autograd][linear][integer]") {
  const Tensor x =
      random_codes({9, 20}, activation_params({8, false, false}, 0.013f, 100), CodeStorage::kU8, 1);
  QParams params = weight_params(8, 3);
  params.scale = {0.011f, 0.0007f, 0.3f};
  const Tensor weight = random_codes({3, 20}, params, CodeStorage::kS8, 2);
  const Tensor y = linear(x, weight, Tensor::full({3}, 0.37f));
  for (const QType& type : test::activation_types()) {
    const QParams to = activation_params(type, 0.9f, type.is_signed ? 0 : 1);
    test::check_requantize(y, to, rescaled(y, to));
    const Tensor relu = TensorAccess::with_activation(y, Activation::kRelu);
    test::check_requantize(relu, to, rescaled(y, to));
    const Tensor relu6 = TensorAccess::with_activation(y, Activation::kRelu6);
    test::check_requantize(relu6, to, rescaled(y, to));
  }
}

TEST_CASE("accumulators have the range and activation masks of the floats they represent",
          "[autograd][linear][integer]") {
  const QParams params = activation_params({8, false, false}, 0.11f, 128);
  const Tensor x = random_codes({9, 30}, params, CodeStorage::kU8, 3);
  const Tensor y = linear(x, random_weight({7, 30}, 8, 4), exact_bias(7));
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    const Tensor behind = TensorAccess::with_activation(y, activation);
    const std::vector<float> floats = values(behind);
    const auto [min, max] = std::minmax_element(floats.begin(), floats.end());
    const Range range = TensorAccess::waiting(y)->range(y.elements(), activation);
    CHECK(range == Range{*min, *max});
    CHECK(TensorAccess::waiting(y)->WaitingResult::range(y.elements(), activation) == range);
    if (activation == Activation::kNone) continue;
    std::vector<uint8_t> mask(static_cast<size_t>((y.elements() + 7) / 8));
    std::vector<uint8_t> of_floats(mask.size());
    TensorAccess::waiting(y)->activation_mask(y.elements(), activation, mask.data());
    TensorAccess::waiting(y)->WaitingResult::activation_mask(
        y.elements(), activation, of_floats.data());
    CHECK(mask == of_floats);
  }
}

TEST_CASE("a batch norm takes the memory of integer sums if nobody else holds them",
          "[autograd][linear][integer]") {
  const Tensor x =
      random_codes({90, 24}, activation_params({8, false, false}, 0.11f, 128), CodeStorage::kU8, 3);
  const Tensor weight = random_weight({16, 24}, 8, 4);
  const auto product = [&] { return linear(x, weight, exact_bias(16)); };
  const auto normalise = [](Tensor h) {
    const Tensor one = Tensor::full({h.dim(-1)}, 1.0f);
    const Tensor two = Tensor::full({h.dim(-1)}, 2.0f);
    return rescaled_batch_norm(std::move(h), two, Tensor(), two, one, one * 1.0f, one * 1.0f);
  };
  const std::vector<float> sums = values(product());
  const std::vector<float> expected = values(normalise(as_floats(product())));
  SECTION("alone") {
    Tensor h = product();
    const void* const memory = sums_of(h).values;
    const NoGrad no_grad;  // no node keeps the floats, so they become the result
    const Tensor y = normalise(std::move(h));
    CHECK(static_cast<const void*>(y.data()) == memory);
    CHECK(values(y) == expected);
  }
  SECTION("another handle") {
    const Tensor h = product();
    CHECK(values(normalise(h)) == expected);
    CHECK(values(h) == sums);
  }
  SECTION("a tensor that shares the sums") {
    Tensor h = product();
    const Tensor shares = h.detach();
    CHECK(values(normalise(std::move(h))) == expected);
    CHECK(values(shares) == sums);
  }
  SECTION("floats that were read before") {
    Tensor h = product();
    const Floats before = h.floats();
    CHECK(values(normalise(std::move(h))) == expected);
    CHECK(std::vector<float>(before.data(), before.data() + before.size()) == sums);
  }
  SECTION("gradients") {
    std::vector<float> gradients[2];
    for (const bool takes : {false, true}) {
      Tensor bias = test::make_leaf({16}, std::vector<float>(16, 0.0f));
      Tensor factor = test::make_leaf({16}, std::vector<float>(16, 2.0f));
      Tensor gamma = test::make_leaf({16}, std::vector<float>(16, 1.5f));
      const Tensor one = Tensor::full({16}, 1.0f);
      Tensor h = linear(x, weight, bias);
      const Tensor held = takes ? Tensor() : h;
      const Tensor y =
          rescaled_batch_norm(std::move(h), factor, Tensor(), gamma, one, one * 1.0f, one * 1.0f);
      sum(mul(y, test::random_tensor({90, 16}, 7))).backward();
      for (const Tensor& leaf : {bias, factor, gamma}) {
        const std::vector<float> grad = values(leaf.grad());
        gradients[takes].insert(gradients[takes].end(), grad.begin(), grad.end());
      }
    }
    CHECK(gradients[0] == gradients[1]);
  }
  SECTION("a recording") {
    const Recording recording;
    const Tensor y = normalise(product());
    CHECK(values(y) == expected);
    CHECK(values(y.node()->input(0)) == sums);
  }
  SECTION("another last axis") {
    const Tensor flat = reshape(product(), {180, 8});
    CHECK(values(normalise(flat)) == values(normalise(as_floats(flat))));
  }
}

TEST_CASE("per-tensor weights give all channels the same scale", "[autograd][linear][integer]") {
  const QParams params = activation_params({8, false, false}, kScaleX, 0);
  const Tensor x = random_codes({2, 4}, params, CodeStorage::kU8, 1);
  const QParams one{{8, true, true}, -1, {kScaleW}, {0}};
  const Tensor y = linear(x, random_codes({3, 4}, one, CodeStorage::kS8, 2));
  CHECK(sums_of(y).scale == std::vector<double>(3, 0x1p-11));
}

TEST_CASE("linear computes with floats unless it gets activation and symmetric weight codes",
          "[autograd][linear][integer]") {
  const QParams params = activation_params({8, false, false}, kScaleX, 3);
  const Tensor x = random_codes({2, 4}, params, CodeStorage::kU8, 1);
  const Tensor weight = random_weight({3, 4}, 8, 2);
  const std::vector<float> expected = values(linear(as_floats(x), as_floats(weight)));
  const auto check = [&](const Tensor& y) {
    CHECK(y.kind() == ValueKind::kFloat);
    CHECK(values(y) == expected);
  };
  check(linear(as_floats(x), weight));
  check(linear(x, as_floats(weight)));

  QParams affine = weight_params(8, 3);
  affine.zero_point[1] = 1;
  CHECK(linear(x, random_codes({3, 4}, affine, CodeStorage::kS8, 2)).kind() == ValueKind::kFloat);
  CHECK(linear(x, random_codes({3, 4}, params, CodeStorage::kU8, 2)).kind() == ValueKind::kFloat);
  QParams along_input = weight_params(8, 4);
  along_input.axis = 1;
  CHECK(linear(x, random_codes({3, 4}, along_input, CodeStorage::kS8, 2)).kind() ==
        ValueKind::kFloat);
}

TEST_CASE("an integer product has the gradients of the float product", "[autograd][integer]") {
  const QParams params = activation_params({8, false, false}, 0.02f, 7);
  const auto same = [](const Tensor& y, const Tensor& z) {
    const Tensor grad_y = test::random_tensor(y.shape(), 9);
    const std::vector<Tensor> a = y.node()->backward(grad_y);
    const std::vector<Tensor> b = z.node()->backward(grad_y);
    for (size_t i = 0; i < 3; ++i) CHECK(values(a[i]) == values(b[i]));
  };
  const auto needed = [](Tensor x) { return x.set_requires_grad(true); };
  const Tensor bias = needed(exact_bias(4));
  {
    const Tensor x = needed(random_codes({3, 9}, params, CodeStorage::kU8, 1));
    const Tensor weight = needed(random_weight({4, 9}, 8, 2));
    const Tensor y = linear(x, weight, bias);
    CHECK(y.kind() == ValueKind::kWaiting);
    same(y, linear(needed(as_floats(x)), needed(as_floats(weight)), bias));
  }
  {
    const Tensor x = needed(random_codes({2, 5, 4, 2}, params, CodeStorage::kU8, 1));
    const Tensor weight = needed(random_weight({4, 3, 3, 2}, 8, 2));
    const Conv2dOptions options{.stride = 2, .padding = 1};
    const Tensor y = conv2d(x, weight, bias, options);
    CHECK(y.kind() == ValueKind::kWaiting);
    same(y, conv2d(needed(as_floats(x)), needed(as_floats(weight)), bias, options));
  }
}

TEST_CASE("an empty batch of codes gives empty accumulators", "[autograd][integer]") {
  const QParams params = activation_params({8, false, false}, kScaleX, 0);
  const Tensor x = random_codes({0, 4}, params, CodeStorage::kU8, 1);
  CHECK(linear(x, random_weight({3, 4}, 8, 2)).shape() == Shape{0, 3});
  const Tensor image = random_codes({0, 4, 4, 1}, params, CodeStorage::kU8, 1);
  const Tensor y = conv2d(image, random_weight({3, 3, 3, 1}, 8, 2));
  CHECK(y.shape() == Shape{0, 2, 2, 3});
  CHECK(values(y).empty());
}

TEST_CASE("linear of codes without outputs or without inputs equals linear of floats",
          "[autograd][integer]") {
  const QParams params = activation_params({8, false, false}, kScaleX, 3);
  for (const Shape& shape : {Shape{0, 4}, Shape{3, 0}, Shape{0, 0}}) {
    const Tensor x = random_codes({2, shape[1]}, params, CodeStorage::kU8, 1);
    const Tensor weight = random_weight(shape, 8, 2);
    const Tensor bias = exact_bias(shape[0]);
    CAPTURE(shape);
    const Tensor y = linear(x, weight, bias);
    CHECK(y.shape() == Shape{2, shape[0]});
    CHECK(values(y) == values(linear(as_floats(x), as_floats(weight), bias)));
  }
}

TEST_CASE("reshape keeps the integers of accumulators", "[autograd][reshape][integer]") {
  const QParams params = activation_params({8, false, false}, kScaleX, 0);
  const Tensor x = random_codes({2, 4}, params, CodeStorage::kU8, 1);
  const Tensor y = linear(x, random_weight({6, 4}, 8, 2));
  const Tensor z = reshape(y, {2, 3, -1});
  CHECK(z.kind() == ValueKind::kWaiting);
  CHECK(TensorAccess::waiting(z) == TensorAccess::waiting(y));
  CHECK(values(z) == values(y));
}

TEST_CASE("sums and biases that could overflow 32 bits are refused", "[autograd][integer]") {
  const QParams params = activation_params({8, false, false}, kScaleX, 0);
  const Tensor long_x = random_codes({1, 33156}, params, CodeStorage::kU8, 1);
  const Tensor pixel = random_codes({1, 1, 1, 1}, params, CodeStorage::kU8, 1);
  constexpr int64_t kWide = std::numeric_limits<int32_t>::max();
  QUANTRAIN_CHECK_ERROR(avg_pool2d(pixel, {.kernel = kWide, .padding = kWide - 1}),
                        QuantError,
                        "codes could overflow 32 bits: x [1, 1, 1, 1]");
  QUANTRAIN_CHECK_ERROR(linear(long_x, random_weight({1, 33156}, 8, 2)),
                        QuantError,
                        "[linear] sums of 33156 products could overflow 32 bits: at most 33155 "
                        "with weights of type s8 narrow");
  const QParams full{{8, true, false}, -1, {kScaleW}, {0}};
  QUANTRAIN_CHECK_ERROR(linear(long_x, random_codes({1, 33156}, full, CodeStorage::kS8, 2)),
                        QuantError,
                        "at most 32896 with weights of type s8");
  QUANTRAIN_CHECK_ERROR(
      conv2d(reshape(long_x, {1, 1, 1, -1}), random_weight({1, 1, 1, 33156}, 8, 2)),
      QuantError,
      "[conv2d] sums of 33156 products");

  const Tensor x = random_codes({1, 2}, params, CodeStorage::kU8, 1);
  const float huge[] = {0.0f, 1e6f, 0.0f};
  QUANTRAIN_CHECK_ERROR(linear(x, random_weight({3, 2}, 8, 2), Tensor::from({3}, huge)),
                        QuantError,
                        "[linear] channel 1: [bias]");
}

}  // namespace quantrain
