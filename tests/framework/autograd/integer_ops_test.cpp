#include <algorithm>
#include <cmath>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/autograd/ops/elementwise.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/framework/autograd/codes.hpp"
#include "tests/threads.hpp"

// Operations on codes and waiting results, other than linear layers and convolutions. Numbers in
// parentheses, such as (8), refer to equations of docs/quantization.md.
namespace quantrain {
namespace {

using test::activation_params;
using test::activations;
using test::as_floats;
using test::check_same_gradient;
using test::code_values;
using test::random_codes;
using test::scale_of;
using test::values;
using test::zero_of;

/// Accumulators at scale 1 / 4 with these real values.
Tensor quarter_accumulators(const std::vector<float>& reals) {
  auto x = std::make_shared<Codes>();
  x->bytes = Buffer<uint8_t>(static_cast<int64_t>(reals.size()));
  x->params = activation_params({8, false, false}, 0.5f, 128);
  for (size_t i = 0; i < reals.size(); ++i) {
    x->bytes[static_cast<int64_t>(i)] = static_cast<uint8_t>(std::lround(reals[i] * 4.0f) + 128);
  }
  auto one = std::make_shared<Codes>();
  one->bytes = Buffer<uint8_t>(1);
  one->bytes[0] = 1;
  one->storage = CodeStorage::kS8;
  one->params = {{8, true, true}, -1, {0.5f}, {0}};
  const Tensor codes = Tensor::from_codes({static_cast<int64_t>(reals.size()), 1}, std::move(x));
  Tensor leaf = codes;
  leaf.set_requires_grad(true);
  return linear(leaf, Tensor::from_codes({1, 1}, std::move(one)));
}

}  // namespace

TEST_CASE("relu of accumulators keeps their integers", "[autograd][relu][integer]") {
  const Tensor x = quarter_accumulators({-1, 0, 0.25f, 5.75f, 6, 7});
  const Tensor y = relu(x);
  CHECK(y.kind() == ValueKind::kWaiting);
  CHECK(TensorAccess::waiting(y) == TensorAccess::waiting(x));
  CHECK(TensorAccess::activation(y) == Activation::kRelu);
  CHECK(values(y) == std::vector<float>{0, 0, 0.25f, 5.75f, 6, 7});
  const Tensor z = relu6(x);
  CHECK(TensorAccess::activation(z) == Activation::kRelu6);
  CHECK(values(z) == std::vector<float>{0, 0, 0.25f, 5.75f, 6, 6});

  const Tensor ones = Tensor::full(x.shape(), 1.0f);
  CHECK(values(y.node()->backward(ones)[0]) == std::vector<float>{0, 0, 1, 1, 1, 1});
  CHECK(values(z.node()->backward(ones)[0]) == std::vector<float>{0, 0, 1, 1, 0, 0});
}

TEST_CASE("of two activations in a row, the tighter one applies", "[autograd][relu][integer]") {
  const Tensor x = quarter_accumulators({-1, 3, 7});
  CHECK(TensorAccess::activation(relu(relu(x))) == Activation::kRelu);
  CHECK(TensorAccess::activation(relu6(relu(x))) == Activation::kRelu6);
  CHECK(TensorAccess::activation(relu(relu6(x))) == Activation::kRelu6);
  CHECK(values(relu(relu6(x))) == std::vector<float>{0, 3, 6});
}

TEST_CASE("relu clamps codes", "[autograd][relu][integer]") {
  for (const QType& type : test::activation_types()) {
    const Tensor x = activations({5, 13}, type, 0.25f, zero_of(type), 1);
    const Tensor y = relu(x);
    CHECK(y.codes()->params == x.codes()->params);
    CHECK(values(y) == values(relu(as_floats(x))));  // 0 is a code, so nothing is rounded
    check_same_gradient(y, relu(as_floats(x).set_requires_grad(true)));
    const Tensor z = relu6(x);
    // 6 = 24 * 0.25 is either the value of a code or above the values of all codes. So nothing is
    // rounded.
    CHECK(values(z) == values(relu6(as_floats(x))));
    check_same_gradient(z, relu6(as_floats(x).set_requires_grad(true)));
  }
}

TEST_CASE("relu with its own parameters is a function of codes", "[autograd][relu][integer]") {
  for (const QType& type : test::activation_types()) {
    const Tensor x = activations({5, 13}, type, 0.25f, zero_of(type), 1);
    for (const Activation activation : {Activation::kRelu, Activation::kRelu6}) {
      const Tensor y = activate_with_own_params(x, activation);
      CHECK(y.kind() == ValueKind::kWaiting);
      CHECK(values(y) == values(activate(as_floats(x), activation)));
      check_same_gradient(y, activate(as_floats(x).set_requires_grad(true), activation));
    }
  }
  const Tensor sums = quarter_accumulators({-1, 3, 7});  // they wait already
  CHECK(TensorAccess::waiting(activate_with_own_params(sums, Activation::kRelu)) ==
        TensorAccess::waiting(sums));
}

TEST_CASE("max_pool2d of codes equals max_pool2d of the values they represent",
          "[autograd][max_pool2d][integer]") {
  for (const QType& type : test::activation_types()) {
    for (const Pool2dOptions& options :
         {Pool2dOptions{.kernel = 2}, Pool2dOptions{.kernel = 3, .stride = 2, .padding = 1}}) {
      const Tensor x = activations({2, 5, 6, 3}, type, 0.1f, zero_of(type), 1);
      const Tensor y = max_pool2d(x, options);
      CHECK(y.codes()->params == x.codes()->params);
      const Tensor z = max_pool2d(as_floats(x).set_requires_grad(true), options);
      CHECK(values(y) == values(z));
      check_same_gradient(y, z);  // ties included; with 2 bits there are many
    }
  }
}

TEST_CASE("avg_pool2d of codes rounds the sum once, by (8)", "[autograd][avg_pool2d][integer]") {
  for (const QType& type : test::activation_types()) {
    for (const Pool2dOptions& options : {Pool2dOptions{.kernel = 2},
                                         Pool2dOptions{.kernel = 3, .stride = 2, .padding = 1},
                                         Pool2dOptions{.kernel = {5, 6}}}) {
      const int32_t zero = zero_of(type);
      const Tensor x = activations({2, 5, 6, 3}, type, 0.0625f, zero, 1);
      const Tensor y = avg_pool2d(x, options);
      const Tensor z = avg_pool2d(as_floats(x).set_requires_grad(true), options);
      // The values are multiples of 1 / 16 below 16, so the float sums are exact, and only the
      // means are rounded.
      CHECK(values(y) == values(z));
      check_same_gradient(y, z);

      const kernels::Conv2dShape s = pool2d_shape("test", x.shape(), options);
      const std::vector<int32_t> codes = code_values(x);
      for (const float scale_y : {0.05f, 0.0625f, 0.011f}) {
        const QParams to = activation_params(type, scale_y, zero);
        std::vector<int64_t> unclamped;
        for (int64_t n = 0; n < s.n; ++n) {
          for (int64_t i = 0; i < s.oh(); ++i) {
            for (int64_t j = 0; j < s.ow(); ++j) {
              for (int64_t c = 0; c < s.c; ++c) {
                int32_t sum = 0;
                int64_t count = 0;
                for (int64_t u = 0; u < s.kh; ++u) {
                  for (int64_t v = 0; v < s.kw; ++v) {
                    const int64_t h = i * s.stride_h - s.pad_h + u;
                    const int64_t w = j * s.stride_w - s.pad_w + v;
                    if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
                    sum += codes[static_cast<size_t>(((n * s.h + h) * s.w + w) * s.c + c)] - zero;
                    ++count;
                  }
                }
                const Multiplier m = make_multiplier(
                    scale_of(x) / (static_cast<double>(count) * static_cast<double>(scale_y)));
                unclamped.push_back(rounding_shift(int64_t{sum} * m.m0, m.shift) + zero);
              }
            }
          }
        }
        test::check_requantize(y, to, unclamped);
        test::check_requantize(relu(y), to, unclamped);
      }
    }
  }
}

TEST_CASE("add of codes rounds once, by (11)", "[autograd][add][integer]") {
  for (const QType& type : test::activation_types()) {
    const int32_t zero = zero_of(type);
    const Tensor a = activations({7, 19}, type, 0.125f, zero, 1);
    const Tensor b = activations({7, 19}, {8, false, false}, 0.03125f, 131, 2);
    const Tensor y = add(a, b);
    CHECK(values(y) == values(add(as_floats(a), as_floats(b))));  // powers of two: exact
    check_same_gradient(y, add(as_floats(a).set_requires_grad(true), as_floats(b)));

    const std::vector<int32_t> codes_a = code_values(a);
    const std::vector<int32_t> codes_b = code_values(b);
    for (const float scale_y : {0.2f, 0.03f}) {
      const QParams to = activation_params(type, scale_y, zero);
      const AddMultipliers m = make_add_multipliers(
          {scale_of(a) / static_cast<double>(scale_y), scale_of(b) / static_cast<double>(scale_y)});
      std::vector<int64_t> unclamped;
      for (size_t i = 0; i < codes_a.size(); ++i) {
        const int64_t sum =
            int64_t{codes_a[i] - zero} * m.m[0] + int64_t{codes_b[i] - 131} * m.m[1];
        unclamped.push_back(rounding_shift(sum, m.shift) + zero);
      }
      test::check_requantize(y, to, unclamped);
      test::check_requantize(relu(y), to, unclamped);
    }
  }
}

TEST_CASE("a sum of codes has the floats, range and masks of the sum of its floats",
          "[autograd][add][integer]") {
  for (const int64_t n : {1, 7, 2047, 2049, 32769, 100001}) {
    const Tensor a = activations({n}, {8, false, false}, 0.013f, 128, 1);
    const Tensor b = activations({n}, {8, false, false}, 0.021f, 120, 2);
    const Tensor y = add({a, b, a});
    const Tensor floats = add({as_floats(a), as_floats(b), as_floats(a)});
    const auto& sum = TensorAccess::waiting(y);
    for (const int threads : test::thread_counts({1, 2, 3})) {
      CAPTURE(n, threads);
      set_threads(threads);
      Buffer<float> all(n);
      sum->to_float(all.data());
      CHECK(std::vector<float>(all.begin(), all.end()) == values(floats));
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
        CHECK(sum->range(n, activation) == sum->WaitingResult::range(n, activation));
        if (activation == Activation::kNone) continue;
        std::vector<uint8_t> mask(static_cast<size_t>((n + 7) / 8));
        std::vector<uint8_t> of_floats(mask.size());
        sum->activation_mask(n, activation, mask.data());
        sum->WaitingResult::activation_mask(n, activation, of_floats.data());
        CHECK(mask == of_floats);
      }
    }
    set_threads(0);
  }
}

TEST_CASE("add of any number of codes rounds once, by (11)", "[autograd][add][integer]") {
  for (const QType& type : test::activation_types()) {
    for (const size_t count : {3u, 8u}) {
      const int32_t zero = zero_of(type);
      std::vector<Tensor> x;
      std::vector<double> scales;
      for (size_t i = 0; i < count; ++i) {
        // Powers of two, so that the sums of floats are exact.
        const float scale = std::ldexp(1.0f, -2 - static_cast<int>(i % 4));
        x.push_back(activations({7, 19}, type, scale, zero, i + 1));
        scales.push_back(scale_of(x.back()));
      }
      x.push_back(x[1]);  // one operand twice
      scales.push_back(scales[1]);
      const Tensor y = add(x);
      CHECK(y.kind() == ValueKind::kWaiting);
      std::vector<Tensor> floats;
      for (const Tensor& operand : x) floats.push_back(as_floats(operand));
      floats[0].set_requires_grad(true);
      CHECK(values(y) == values(add(floats)));
      check_same_gradient(y, add(floats));
      for (const float scale_y : {0.2f, 0.03f}) {
        std::vector<double> multipliers;
        for (const double scale : scales)
          multipliers.push_back(scale / static_cast<double>(scale_y));
        const AddMultipliers m = make_add_multipliers(multipliers);
        std::vector<int64_t> unclamped(static_cast<size_t>(y.elements()), 0);
        for (size_t k = 0; k < x.size(); ++k) {
          const std::vector<int32_t> codes = code_values(x[k]);
          for (size_t i = 0; i < codes.size(); ++i)
            unclamped[i] += int64_t{codes[i] - zero} * m.m[k];
        }
        for (int64_t& sum : unclamped) sum = rounding_shift(sum, m.shift) + zero;
        const QParams to = activation_params(type, scale_y, zero);
        test::check_requantize(y, to, unclamped);
        test::check_requantize(relu(y), to, unclamped);
      }
    }
  }
}

TEST_CASE("add computes with floats if it broadcasts or an operand does not hold codes",
          "[autograd][add][integer]") {
  const Tensor a = activations({3, 4}, {8, false, false}, 0.125f, 3, 1);
  const Tensor row = activations({4}, {8, false, false}, 0.25f, 5, 2);
  // A row of floats would be a constant, and adding a constant has an integer form. Adding a row of
  // codes has none.
  CHECK(add(a, row).kind() == ValueKind::kFloat);
  CHECK(values(add(a, row)) == values(add(as_floats(a), as_floats(row))));
  CHECK(add(a, as_floats(a)).kind() == ValueKind::kFloat);
  CHECK(add({a, a, row}).kind() == ValueKind::kFloat);
  CHECK(values(add({a, as_floats(a), row})) == values(add({as_floats(a), as_floats(a), row})));
}

TEST_CASE("mul of codes rounds the exact product once, by (25)", "[autograd][mul][integer]") {
  const Shape shape{3, 4, 5, 7};
  for (const QType& type : test::activation_types()) {
    for (const Shape& other : {shape, Shape{3, 1, 1, 7}}) {
      for (const bool swapped : {false, true}) {
        CAPTURE(other, swapped);
        const int32_t zero = zero_of(type);
        const Tensor a = activations(shape, type, 0.125f, zero, 1);
        const Tensor b = activations(other, {8, false, false}, 0.03125f, 131, 2);
        const Tensor y = swapped ? mul(b, a) : mul(a, b);
        CHECK(y.shape() == shape);
        CHECK(values(y) == values(mul(as_floats(a), as_floats(b))));  // powers of two: exact
        const Tensor float_a = as_floats(a).set_requires_grad(true);
        const Tensor float_b = as_floats(b).set_requires_grad(true);
        // If the shapes differ, mul() makes the smaller tensor the second operand. It does so for
        // codes and for floats, so the operands of both products have the same order.
        check_same_gradient(y, swapped ? mul(float_b, float_a) : mul(float_a, float_b));

        const std::vector<int32_t> codes_a = code_values(a);
        const std::vector<int32_t> codes_b = code_values(b);
        for (const float scale_y : {0.2f, 0.03f, 0.001f}) {
          const QParams to = activation_params(type, scale_y, zero);
          const Multiplier m =
              make_multiplier(scale_of(a) * scale_of(b) / static_cast<double>(scale_y));
          std::vector<int64_t> unclamped;
          for (size_t i = 0; i < codes_a.size(); ++i) {
            const size_t k = other == shape ? i : i / 140 * 7 + i % 7;
            const int64_t product = int64_t{codes_a[i] - zero} * (codes_b[k] - 131);
            unclamped.push_back(rounding_shift(product * m.m0, m.shift) + zero);
          }
          test::check_requantize(y, to, unclamped);
          test::check_requantize(relu(y), to, unclamped);
        }
      }
    }
  }
}

TEST_CASE("the values of a product of codes are the products of the codes' values",
          "[autograd][mul][integer]") {
  // With 700 or 20000 channels, and for `image` below, the loop over rows has several blocks, and
  // some of them end within a sample.
  for (const int64_t channels : {0, 1, 3, 700, 20000}) {
    const int64_t rows = channels > 1000 ? 3 : 133;
    const Tensor a = activations({3, rows, 1, channels}, {8, false, false}, 0.1f, 77, 1);
    for (const Shape& other : {a.shape(), Shape{3, 1, 1, channels}}) {
      CAPTURE(channels, other);
      const Tensor b = activations(other, {8, true, false}, 0.03f, -5, 2);
      const Tensor y = mul(a, b);
      CHECK(y.kind() == ValueKind::kWaiting);
      CHECK(values(y) == values(mul(as_floats(a), as_floats(b))));
    }
  }
  const Tensor image = activations({2, 170, 140, 1}, {8, false, false}, 0.1f, 77, 1);
  const Tensor factor = activations({2, 1, 1, 1}, {8, false, false}, 0.03f, 5, 2);
  CHECK(values(mul(image, factor)) == values(mul(as_floats(image), as_floats(factor))));
}

TEST_CASE("mul of codes computes with floats for broadcast shapes without an integer form",
          "[autograd][mul][integer]") {
  const Tensor a = activations({2, 3, 4}, {8, false, false}, 0.125f, 3, 1);
  for (const Shape& shape : {Shape{4}, Shape{2, 3, 1}, Shape{1, 1, 4}, Shape{2, 1, 1}}) {
    CAPTURE(shape);
    const Tensor b = activations(shape, {8, false, false}, 0.25f, 5, 2);
    CHECK(mul(a, b).kind() == ValueKind::kFloat);
    CHECK(values(mul(a, b)) == values(mul(as_floats(a), as_floats(b))));
  }
  CHECK(mul(a, as_floats(a)).kind() == ValueKind::kFloat);
  QUANTRAIN_CHECK_ERROR(mul(Tensor::zeros({2, 3}), Tensor::zeros({4, 3})),
                        ShapeError,
                        "[mul] shapes do not broadcast: [2, 3] and [4, 3]");
  // Empty operands.
  const Tensor none = activations({0, 3, 4}, {8, false, false}, 0.125f, 3, 1);
  CHECK(mul(none, none).shape() == Shape{0, 3, 4});
}

TEST_CASE("concat of codes rescales each operand by (8)", "[autograd][concat][integer]") {
  for (const QType& type : test::activation_types()) {
    const int32_t zero = zero_of(type);
    const Tensor a = activations({3, 2, 5}, type, 0.125f, zero, 1);
    const Tensor b = activations({3, 1, 5}, {8, false, false}, 0.0371f, 131, 2);
    const Tensor none = activations({3, 0, 5}, type, 1.0f, zero, 3);
    const Tensor y = concat({a, none, b}, 1);
    const Tensor z =
        concat({as_floats(a).set_requires_grad(true), as_floats(none), as_floats(b)}, 1);
    CHECK(values(y) == values(z));
    check_same_gradient(y, z);

    const std::vector<int32_t> codes_a = code_values(a);
    const std::vector<int32_t> codes_b = code_values(b);
    const float scale_y = 0.05f;
    const QParams to = activation_params(type, scale_y, zero);
    std::vector<int64_t> unclamped;
    const auto push = [&](double scale, int32_t value) {
      const Multiplier m = make_multiplier(scale / static_cast<double>(scale_y));
      unclamped.push_back(rounding_shift(int64_t{value} * m.m0, m.shift) + zero);
    };
    for (size_t row = 0; row < 3; ++row) {
      for (size_t i = 0; i < 10; ++i) push(scale_of(a), codes_a[row * 10 + i] - zero);
      for (size_t i = 0; i < 5; ++i) push(scale_of(b), codes_b[row * 5 + i] - 131);
    }
    test::check_requantize(y, to, unclamped);
  }
  const Tensor codes = activations({2, 2}, {8, false, false}, 1.0f, 0, 1);
  CHECK(concat({codes, as_floats(codes)}, 0).kind() == ValueKind::kFloat);
}

TEST_CASE("reshape and flatten keep codes", "[autograd][reshape][integer]") {
  const Tensor x = activations({2, 3, 4}, {8, true, false}, 0.1f, 3, 1);
  CHECK(reshape(x, {6, -1}).codes() == x.codes());
  CHECK(flatten(x).codes() == x.codes());
  CHECK(values(flatten(x)) == values(x));
  // Per-channel scales belong to an axis, so they have no meaning in another shape.
  const QParams per_channel{{8, true, true}, 1, {0.1f, 0.2f, 0.3f}, {0, 0, 0}};
  const Tensor w = random_codes({2, 3, 4}, per_channel, CodeStorage::kS8, 1);
  CHECK(flatten(w).kind() == ValueKind::kFloat);
  CHECK(values(flatten(w)) == values(w));
}

TEST_CASE("sigmoid and tanh of codes are computed from their values and rounded once",
          "[autograd][elementwise][integer]") {
  struct Case {
    Tensor (*of)(const Tensor&);
    double (*f)(double);
    double (*derivative)(double);
  };
  const Case cases[] = {{sigmoid,
                         [](double v) { return 1.0 / (1.0 + std::exp(-v)); },
                         [](double v) {
                           const double y = 1.0 / (1.0 + std::exp(-v));
                           return y * (1.0 - y);
                         }},
                        {quantrain::tanh,
                         [](double v) { return std::tanh(v); },
                         [](double v) { return 1.0 - std::tanh(v) * std::tanh(v); }}};
  for (const Case& c : cases) {
    for (const QType& type : test::activation_types()) {
      const int32_t zero = zero_of(type);
      const Tensor x = activations({7, 19}, type, 0.07f, zero, 1);
      const Tensor y = c.of(x);
      REQUIRE(y.kind() == ValueKind::kWaiting);
      CHECK_FALSE(TensorAccess::waiting(y)->sums());
      CHECK(y.shape() == x.shape());
      const std::vector<int32_t> codes = code_values(x);
      std::vector<float> expected;
      for (const int32_t q : codes)
        expected.push_back(static_cast<float>(c.f(scale_of(x) * (q - zero))));
      CHECK(values(y) == expected);

      // Each derivative is computed in double and rounded to float32.
      const Tensor grad_y = test::random_tensor(y.shape(), 9);
      const std::vector<float> grad = values(y.node()->backward(grad_y)[0]);
      const std::vector<float> upstream = values(grad_y);
      for (size_t i = 0; i < codes.size(); ++i) {
        const auto slope = static_cast<float>(c.derivative(scale_of(x) * (codes[i] - zero)));
        CHECK(grad[i] == upstream[i] * slope);
      }

      // At scale 0.003, many values lie outside the range of the codes. They are clamped, so their
      // gradients do not pass.
      for (const float scale_y : {0.05f, 0.01f, 0.003f}) {
        for (const QType& to_type : test::activation_types()) {
          const QParams to = activation_params(to_type, scale_y, zero_of(to_type));
          std::vector<int64_t> unclamped;
          for (const float value : expected) {
            constexpr int32_t kFar = 1 << 20;
            unclamped.push_back(quantize(value, scale_y, to.zero_point[0], -kFar, kFar));
          }
          test::check_requantize(y, to, unclamped);
          test::check_requantize(relu(y), to, unclamped);
          test::check_requantize(relu6(y), to, unclamped);
        }
      }
    }
  }
}

TEST_CASE("range and activation mask of a function of codes follow from its float values",
          "[autograd][elementwise][integer]") {
  const Tensor x = activations({5, 9}, {8, false, false}, 0.05f, 128, 1);
  const Tensor y = quantrain::tanh(x);
  const std::vector<float> floats = values(y);
  const auto [min, max] = std::minmax_element(floats.begin(), floats.end());
  CHECK(TensorAccess::waiting(y)->range(y.elements(), Activation::kNone) == Range{*min, *max});
  CHECK(TensorAccess::waiting(y)->range(y.elements(), Activation::kRelu) == Range{0.0f, *max});
  const Tensor ones = Tensor::full(y.shape(), 1.0f);
  const std::vector<float> grad = values(relu(y).node()->backward(ones)[0]);
  for (size_t i = 0; i < floats.size(); ++i) CHECK(grad[i] == (floats[i] > 0.0f ? 1.0f : 0.0f));
}

TEST_CASE("an elementwise function of floats computes f and its derivative in double",
          "[autograd][elementwise]") {
  const auto cube = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "cube",
                          .f = [](double v) { return v * v * v; },
                          .derivative = [](double v) { return 3.0 * v * v; }});
  for (const int64_t n : {0, 1, 3, 17, 10000}) {
    const Tensor x = test::random_tensor({n}, 4, -2.0f, 2.0f).set_requires_grad(true);
    const Tensor y = elementwise(cube, x);
    CHECK(y.node()->type() == "cube");
    const std::vector<float> in = values(x);
    const std::vector<float> out = values(y);
    const Tensor grad_y = test::random_tensor({n}, 5);
    const std::vector<float> upstream = values(grad_y);
    const std::vector<float> grad = values(y.node()->backward(grad_y)[0]);
    bool equal = true;
    for (size_t i = 0; i < in.size(); ++i) {
      const double v = double{in[i]};
      equal = equal && out[i] == static_cast<float>(v * v * v) &&
              grad[i] == static_cast<float>(double{upstream[i]} * (3.0 * v * v));
    }
    CHECK(equal);
  }
  const Tensor leaf = test::spread_leaf({3, 5}, 1);
  test::check_gradient([&] { return elementwise(cube, leaf); }, {leaf});
}

TEST_CASE("a function of codes is computed once for each code",
          "[autograd][elementwise][integer]") {
  int calls = 0;
  const auto counted = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "counted",
                          .f = [&](double v) { return ++calls, v * v; },
                          .derivative = [](double v) { return 2.0 * v; }});
  const QParams params{{4, false, false}, -1, {0.1f}, {3}};
  const Tensor x = random_codes({50}, params, CodeStorage::kU8, 1);
  const Tensor y = elementwise(counted, x);
  const auto waiting = TensorAccess::waiting(y);
  waiting->range(50, Activation::kNone);
  uint8_t codes[50];
  uint8_t mask[7];
  waiting->requantize(params, Activation::kNone, codes, mask);
  CHECK(calls == 16);
}

TEST_CASE("a function of weight codes or of per-channel codes computes with floats",
          "[autograd][elementwise][integer]") {
  const QParams weight{{8, true, true}, -1, {0.01f}, {0}};
  const QParams per_channel{{8, false, false}, 1, {0.1f, 0.2f}, {3, 4}};
  const Tensor w = random_codes({4, 2}, weight, CodeStorage::kS8, 1);
  const Tensor x = random_codes({4, 2}, per_channel, CodeStorage::kU8, 1);
  for (const Tensor& codes : {w, x}) {
    const Tensor y = sigmoid(codes);
    CHECK(y.kind() == ValueKind::kFloat);
    CHECK(values(y) == values(sigmoid(as_floats(codes))));
  }
}

TEST_CASE("requantizing a function that is not finite at a code is refused",
          "[autograd][elementwise][integer]") {
  const auto reciprocal = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "reciprocal",
                          .f = [](double v) { return 1.0 / v; },
                          .derivative = [](double v) { return -1.0 / (v * v); }});
  const Tensor x = activations({2, 2}, {8, false, false}, 0.5f, 3, 1);
  uint8_t codes[4];
  QUANTRAIN_CHECK_ERROR(TensorAccess::waiting(elementwise(reciprocal, x))
                            ->requantize(x.codes()->params, Activation::kNone, codes, nullptr),
                        QuantError,
                        "[reciprocal] the function is inf at 0, a value that its input can have");
}

TEST_CASE("an elementwise function needs its type, f and derivative", "[autograd][elementwise]") {
  const auto id = [](double v) { return v; };
  const auto one = [](double) { return 1.0; };
  const Tensor x = Tensor::zeros({2});
  const auto run = [&](const ElementwiseFunction& function) {
    return elementwise(std::make_shared<const ElementwiseFunction>(function), x);
  };
  CHECK(run({.type = "id", .f = id, .derivative = one}).elements() == 2);
  const char* const text = "an elementwise function needs its type, f and derivative";
  QUANTRAIN_CHECK_ERROR(run({.type = "", .f = id, .derivative = one}), GraphError, text);
  QUANTRAIN_CHECK_ERROR(run({.type = "id", .f = {}, .derivative = one}), GraphError, text);
  QUANTRAIN_CHECK_ERROR(run({.type = "id", .f = id, .derivative = {}}), GraphError, text);
  QUANTRAIN_CHECK_ERROR(elementwise(nullptr, x), GraphError, text);
}

TEST_CASE("operations on an empty batch of codes are empty", "[autograd][integer]") {
  const Tensor x = activations({0, 4, 4, 2}, {8, false, false}, 0.1f, 3, 1);
  CHECK(values(relu(x)).empty());
  CHECK(values(max_pool2d(x, {.kernel = 2})).empty());
  const Tensor two = Tensor::full({2}, 1.0f);
  for (const Tensor& y : {global_avg_pool2d(x),
                          add(x, x),
                          add(x, two),
                          mul(two, x),
                          batch_norm(x, two, two, two, two, {.training = false}),
                          concat({x, x}, 3),
                          sigmoid(x)}) {
    CHECK(y.elements() == 0);
    test::check_requantize(y, activation_params({8, false, false}, 0.1f, 3), {});
  }
}

TEST_CASE("waiting results cannot be requantized to per-channel scales", "[autograd][integer]") {
  const Tensor x = activations({2, 2}, {8, false, false}, 0.1f, 3, 1);
  const QParams per_channel{{8, false, false}, 1, {0.1f, 0.2f}, {0, 0}};
  uint8_t codes[4];
  QUANTRAIN_CHECK_ERROR(
      TensorAccess::waiting(add(x, x))->requantize(per_channel, Activation::kNone, codes, nullptr),
      QuantError,
      "activations have one scale and at most 8 bits");
}

}  // namespace quantrain
