#include "quant/prepare/fake_quantize_op.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "tests/catch.hpp"
#include "tests/quant/four_bits.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::make_leaf;
using quantrain::test::values;

}  // namespace

TEST_CASE("fake quantization gives the nearest representable value, ties to even",
          "[quant][fake_quantize]") {
  // 0.25 and 0.75 divided by the scale are 0.5 and 1.5: ties, which round to 0 and 2. The smallest
  // representable value is -1.5, with code 0; the largest is 6, with code 15.
  const Tensor x =
      Tensor::from({7}, std::vector<float>{0.25f, 0.75f, -0.25f, -1.6f, -9.0f, 6.2f, 100.0f});
  const Tensor y = fake_quantize(x, kFourBits);
  CHECK(values(y) == std::vector<float>{0.0f, 1.0f, 0.0f, -1.5f, -1.5f, 6.0f, 6.0f});
  REQUIRE(y.kind() == ValueKind::kCodes);
  CHECK(y.codes()->u8()[0] == 3);
  CHECK(y.codes()->u8()[4] == 0);
  CHECK(y.codes()->u8()[6] == 15);
}

TEST_CASE("signed activations are stored as unsigned bytes", "[quant][fake_quantize]") {
  const QParams params{{.bits = 8, .is_signed = true}, -1, {1.0f}, {0}};
  const Tensor y =
      fake_quantize(Tensor::from({3}, std::vector<float>{-128.0f, 0.0f, 127.0f}), params);
  CHECK(y.codes()->u8()[0] == 0);
  CHECK(y.codes()->u8()[1] == 128);
  CHECK(y.codes()->u8()[2] == 255);
  CHECK(values(y) == std::vector<float>{-128.0f, 0.0f, 127.0f});
}

TEST_CASE("the clamped estimator passes gradients inside the range only, the plain one everywhere",
          "[quant][fake_quantize]") {
  // Codes before the clamp: 0, -1, 15, 16, 3. For example, -1.75 / 0.5 = -3.5 rounds to -4, and
  // with the zero point 3 this is -1.
  const std::vector<float> data{-1.5f, -1.75f, 6.25f, 6.3f, 0.0f};
  Tensor x = make_leaf({5}, data);
  sum(fake_quantize(x, kFourBits)).backward();
  CHECK(values(x.grad()) == std::vector<float>{1.0f, 0.0f, 1.0f, 0.0f, 1.0f});
  Tensor plain = make_leaf({5}, data);
  sum(fake_quantize(plain, kFourBits, {.clamped = false})).backward();
  CHECK(values(plain.grad()) == std::vector<float>(5, 1.0f));
}

TEST_CASE("without codes, the result is a float tensor with the same values",
          "[quant][fake_quantize]") {
  const Tensor x = Tensor::from({4}, std::vector<float>{0.3f, -0.9f, 2.2f, 7.0f});
  const Tensor floats = fake_quantize(x, kFourBits, {.codes = false});
  CHECK(floats.kind() == ValueKind::kFloat);
  CHECK(values(floats) == values(fake_quantize(x, kFourBits)));
}

TEST_CASE("parameters per channel apply along their axis", "[quant][fake_quantize]") {
  const QParams params{{.bits = 8, .is_signed = true, .narrow = true}, 1, {1.0f, 0.25f}, {0, 0}};
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{0.3f, 0.3f, -200.0f, -200.0f});
  CHECK(values(fake_quantize(x, params)) == std::vector<float>{0.0f, 0.25f, -127.0f, -31.75f});
  QUANTRAIN_CHECK_ERROR(fake_quantize(Tensor::zeros({2, 3}), params), ShapeError, "do not fit");
}

TEST_CASE("fake_quantize_scaled equals scaling first and quantizing then, bit for bit",
          "[quant][fake_quantize]") {
  const std::vector<float> factors{0.37f, -1.9f, 0.0f, 1e-3f, 1.0f};
  const QType narrow{.bits = 4, .is_signed = true, .narrow = true};
  const QParams one{narrow, -1, {0.21f}, {0}};
  const QParams each{narrow, 0, {0.21f, 0.6f, 0.1f, 1e-4f, 0.15f}, {0, 0, 0, 0, 0}};
  for (const Shape& shape : {Shape{5, 1}, Shape{5, 7}, Shape{5, 3, 2, 4}, Shape{5, 0}}) {
    for (const QParams& params : {one, each}) {
      for (const bool clamped : {false, true}) {
        for (const bool codes : {false, true}) {
          CAPTURE(shape, params, clamped, codes);
          const FakeQuantizeOptions options{
              .storage = CodeStorage::kS8, .clamped = clamped, .codes = codes};
          const auto run = [&](auto&& function) {
            Tensor x = quantrain::test::random_tensor(shape, 3);
            x.set_requires_grad(true);
            Tensor factor = make_leaf({5}, factors);
            Tensor y = function(x, factor);
            sum(mul(y, quantrain::test::random_tensor(shape, 4))).backward();
            return std::vector{values(y), values(x.grad()), values(factor.grad())};
          };
          const auto apart = run([&](const Tensor& x, const Tensor& factor) {
            std::vector<int64_t> rows(static_cast<size_t>(shape.rank()), 1);
            rows[0] = 5;
            return fake_quantize(mul(x, reshape(factor, Shape(rows))), params, options);
          });
          const auto together = run([&](const Tensor& x, const Tensor& factor) {
            const Tensor y = fake_quantize_scaled(x, factor, params, options);
            CHECK((y.kind() == ValueKind::kCodes) == codes);
            return y;
          });
          CHECK(together == apart);
        }
      }
    }
  }
}

TEST_CASE("parameters that are chosen for each channel give what given ones do, bit for bit",
          "[quant][fake_quantize]") {
  const QType type{.bits = 8, .is_signed = true, .narrow = true};
  const auto choose = [&](int64_t channel, const Range& range) {
    return ScaleZero{weight_scale(std::max(-range.min, range.max), 0.0f, 1.0f, type, "test"),
                     static_cast<int32_t>(channel % 5) - 2};
  };
  // The last two have several blocks of rows.
  for (const Shape& shape :
       {Shape{5, 1}, Shape{5, 7}, Shape{5, 3, 2, 4}, Shape{3000, 9}, Shape{3, 40000}}) {
    const int64_t channels = shape[0];
    Tensor x = quantrain::test::random_tensor(shape, 3);
    x.set_requires_grad(true);
    QParams params{type, 0, {}, {}};
    const int64_t inner = x.elements() / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const auto [low, high] =
          std::minmax_element(x.data() + c * inner, x.data() + (c + 1) * inner);
      const ScaleZero chosen = choose(c, {*low, *high});
      params.scale.push_back(chosen.scale);
      params.zero_point.push_back(chosen.zero_point);
    }
    Tensor factor = quantrain::test::random_tensor({channels}, 5);
    factor.set_requires_grad(true);
    for (const bool scaled : {false, true}) {
      for (const bool codes : {false, true}) {
        const FakeQuantizeOptions options{
            .storage = CodeStorage::kS8, .clamped = false, .codes = codes};
        const auto run = [&](Tensor y) {
          CHECK((y.kind() == ValueKind::kCodes) == codes);
          x.zero_grad();
          factor.zero_grad();
          sum(mul(y, quantrain::test::random_tensor(shape, 4))).backward();
          return std::vector{
              values(y), values(x.grad()), scaled ? values(factor.grad()) : std::vector<float>()};
        };
        const auto given = run(scaled ? fake_quantize_scaled(x, factor, params, options)
                                      : fake_quantize(x, params, options));
        for (const int threads : quantrain::test::thread_counts({1, 2, 3})) {
          CAPTURE(shape, scaled, codes, threads);
          set_threads(threads);
          const Tensor used = scaled ? factor : Tensor();
          const bool equal = run(fake_quantize_chosen(x, used, type, choose, options)) == given;
          CHECK(equal);
        }
        set_threads(0);
      }
    }
  }
}

TEST_CASE("chosen parameters are refused where they do not fit", "[quant][fake_quantize]") {
  const QType type{.bits = 8, .is_signed = true};
  const FakeQuantizeOptions plain{.storage = CodeStorage::kS8, .clamped = false};
  const FakeQuantizeOptions clamped{.storage = CodeStorage::kS8};
  const auto one = [](int64_t, const Range&) { return ScaleZero{1.0f, 0}; };
  const Tensor x = Tensor::full({2, 3}, 2.0f);
  QUANTRAIN_CHECK_ERROR(fake_quantize_chosen(x, Tensor::full({3}, 1.0f), type, one, plain),
                        ShapeError,
                        "factor [3] is not [C] of x [C, ...] [2, 3]");
  QUANTRAIN_CHECK_ERROR(fake_quantize_chosen(Tensor::zeros({2, 0}), Tensor(), type, one, plain),
                        ShapeError,
                        "x [2, 0] has no element to choose parameters from");
  QUANTRAIN_CHECK_ERROR(
      fake_quantize_chosen(x, Tensor(), {.bits = 16, .is_signed = true}, one, plain),
      QuantError,
      "chosen parameters need at most 8 bits, got 16");
  QUANTRAIN_CHECK_ERROR(fake_quantize_chosen(x, Tensor(), {.bits = 8}, one, plain),
                        QuantError,
                        "unsigned codes cannot be stored as signed bytes");
  QUANTRAIN_CHECK_ERROR(fake_quantize_chosen(x, Tensor(), type, one, clamped),
                        QuantError,
                        "chosen parameters need options.clamped = false");
  QUANTRAIN_CHECK_ERROR(
      fake_quantize_chosen(
          x, Tensor::full({2}, std::numeric_limits<float>::max()), type, one, plain),
      DataError,
      "has a NaN or an infinity");
  const auto zero = [](int64_t, const Range&) { return ScaleZero{0.0f, 0}; };
  QUANTRAIN_CHECK_ERROR(fake_quantize_chosen(x, Tensor(), type, zero, plain),
                        QuantError,
                        "[fake_quantize] scale of channel 0 is not positive, finite and normal: 0");
}

TEST_CASE("the first channel without parameters is reported, with any number of threads",
          "[quant][fake_quantize]") {
  const QType type{.bits = 8, .is_signed = true};
  const FakeQuantizeOptions plain{.storage = CodeStorage::kS8, .clamped = false};
  Tensor x = Tensor::full({9000, 9}, 1.0f);
  const auto choose = [](int64_t channel, const Range& range) {
    if (channel % 1000 == 700 || std::isnan(range.min))
      throw DataError("test", "channel ", channel);
    return ScaleZero{1.0f, 0};
  };
  const auto check = [&](const char* message) {
    for (const int threads : quantrain::test::thread_counts({1, 2, 3})) {
      set_threads(threads);
      QUANTRAIN_CHECK_ERROR(
          fake_quantize_chosen(x, Tensor(), type, choose, plain), DataError, message);
    }
    set_threads(0);
  };
  check("[test] channel 700");
  Tensor factor = Tensor::full({9000}, 1.0f);
  factor.mutable_data()[8999] = std::numeric_limits<float>::max();
  Tensor twos = Tensor::full({9000, 9}, 2.0f);
  const auto one = [](int64_t, const Range&) { return ScaleZero{1.0f, 0}; };
  for (const int threads : quantrain::test::thread_counts({1, 2, 3})) {
    set_threads(threads);
    const Scope scope("conv1");
    QUANTRAIN_CHECK_ERROR(fake_quantize_chosen(twos, factor, type, one, plain),
                          DataError,
                          "[conv1] input of the fake quantization has a NaN or an infinity");
  }
  set_threads(0);
  x.mutable_data()[3 * 9 + 1] = std::nanf("");
  check("[test] channel 3");
}

TEST_CASE("scaling inside the quantization refuses what it cannot scale",
          "[quant][fake_quantize]") {
  const Tensor x = Tensor::full({2, 3}, 1.0f);
  const QParams params{{.bits = 8, .is_signed = true}, -1, {0.1f}, {0}};
  QUANTRAIN_CHECK_ERROR(fake_quantize_scaled(x, Tensor::full({3}, 1.0f), params),
                        ShapeError,
                        "factor [3] is not [C] of x [C, ...] [2, 3]");
  Tensor factor = Tensor::full({2}, 1.0f);
  const QParams columns{params.type, 1, {0.1f, 0.1f, 0.1f}, {0, 0, 0}};
  QUANTRAIN_CHECK_ERROR(
      fake_quantize_scaled(x, factor, columns),
      QuantError,
      "scaled values need at most 8 bits and axis -1 or 0, got 8 bits and axis 1");
  QUANTRAIN_CHECK_ERROR(
      fake_quantize_scaled(x, factor, {{.bits = 16, .is_signed = true}, -1, {0.1f}, {0}}),
      QuantError,
      "got 16 bits and axis -1");
  factor.mutable_data()[1] = std::numeric_limits<float>::max();
  CHECK(fake_quantize_scaled(Tensor::zeros({0, 3}), Tensor::zeros({0}), params).elements() == 0);
  QUANTRAIN_CHECK_ERROR(fake_quantize_scaled(Tensor::full({2, 3}, 2.0f), factor, params),
                        DataError,
                        "has a NaN or an infinity");
}

TEST_CASE("codes of more than 8 bits are simulated in float", "[quant][fake_quantize]") {
  const QParams params{{.bits = 16}, -1, {0.001f}, {100}};
  Tensor x = make_leaf({3}, {0.0124f, -0.2f, 70.0f});
  Tensor y = fake_quantize(x, params);
  CHECK(y.kind() == ValueKind::kFloat);
  CHECK(values(y)[0] == 0.001f * 12.0f);
  CHECK(values(y)[1] == 0.001f * -100.0f);
  sum(y).backward();
  CHECK(values(x.grad()) == std::vector<float>{1.0f, 0.0f, 0.0f});
}

TEST_CASE("codes are rescaled as integers, as in the deployed network", "[quant][fake_quantize]") {
  // The difference of a code and the zero point 3 is multiplied by 0.5 / 1, so every even code is a
  // tie. docs/quantization.md (8) rounds ties toward +infinity, (3) rounds them to even.
  const QParams coarse{{.bits = 2}, -1, {1.0f}, {1}};  // real -1 to 2
  Tensor x = make_leaf({5}, {-1.5f, -0.5f, 0.5f, 2.0f, 2.5f});
  Tensor y = fake_quantize(fake_quantize(x, kFourBits), coarse);
  REQUIRE(y.kind() == ValueKind::kCodes);
  CHECK(values(y) == std::vector<float>{-1.0f, 0.0f, 1.0f, 2.0f, 2.0f});
  sum(y).backward();
  // 2.5 would have code 4, which is beyond the largest code 3.
  CHECK(values(x.grad()) == std::vector<float>{1.0f, 1.0f, 1.0f, 1.0f, 0.0f});
}

TEST_CASE("a learned scale gets LSQ's gradient", "[quant][fake_quantize]") {
  const QParams params{{.bits = 4, .is_signed = true}, -1, {0.5f}, {0}};  // codes -8 to 7
  Tensor x = make_leaf({1, 4}, {0.6f, -10.0f, 10.0f, -0.2f});
  Tensor scale = make_leaf({1}, {0.5f});
  sum(fake_quantize_learned(x, scale, params)).backward();
  // Inside the range: round(1.2) - 1.2 = -0.2 and round(-0.4) + 0.4 = 0.4. Outside: -8 and 7. All
  // are multiplied by 1 / sqrt(4 * 7).
  const float expected = (-0.2f + 0.4f - 8.0f + 7.0f) / std::sqrt(28.0f);
  CHECK(values(scale.grad())[0] ==
        quantrain::test::Approx(expected).epsilon(1e-5));  // float32 divisions
  CHECK(values(x.grad()) == std::vector<float>{1.0f, 0.0f, 0.0f, 1.0f});
}

TEST_CASE("LSQ's n counts all weights that share a scale, but activations of one sample only",
          "[quant][fake_quantize]") {
  const auto grad = [](FakeQuantizeConfig config, const Shape& shape) {
    config.estimator = Estimator::kLearned;
    FakeQuantize q(config);
    Tensor x = Tensor::full(shape, 0.25f);
    x.mutable_data()[0] = 0.0f;
    sum(q(x)).backward();
    // The first element contributes 0, each other element half_even(x / s) - x / s.
    const float ratio = 0.25f / q.params().scale[0];
    const float slope = std::nearbyint(ratio) - ratio;
    const double sums = static_cast<double>(slope) * static_cast<double>(x.elements() - 1);
    const double size = static_cast<double>(q.parameters()[0].grad().data()[0]) / sums;
    return std::round(1.0 / (size * size * config.type.qmax()));  // n
  };
  CHECK(grad(FakeQuantizeConfig::int4(), {16, 8}) == 128.0);
  CHECK(grad(FakeQuantizeConfig::q4(), {16, 8}) == 8.0);
}

}  // namespace quantrain::quant
