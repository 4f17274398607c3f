#include "framework/arithmetic/quantize.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"

namespace quantrain {
namespace {

using test::kInfinity;
using test::kNan;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::min();
constexpr QType kU8{8, false, false};
constexpr QType kS8{8, true, false};
constexpr QType kNarrow8{8, true, true};

ScaleZero affine(float min, float max, const QType& type = kU8) {
  return choose_params(Range{min, max}, type, QScheme::kAffine, "fc");
}
ScaleZero symmetric(float min, float max, const QType& type) {
  return choose_params(Range{min, max}, type, QScheme::kSymmetric, "fc");
}
int32_t u8(float x, float scale, int32_t zero_point) {
  return quantize(x, scale, zero_point, 0, 255);
}
// A finite float with a random exponent.
float any_magnitude(Random& random) {
  return std::ldexp(random.uniform(-1.0f, 1.0f), static_cast<int>(random.below(240)) - 120);
}

}  // namespace

TEST_CASE("affine parameters follow (2)", "[arithmetic][choose_params]") {
  CHECK(affine(0, 255) == ScaleZero{1.0f, 0});
  CHECK(affine(0, 1) == ScaleZero{1.0f / 255.0f, 0});  // the code of a pixel is its byte
  CHECK(affine(-255, 0) == ScaleZero{1.0f, 255});
  CHECK(affine(-128, 127) == ScaleZero{1.0f, 128});
  CHECK(affine(-128, 127, kS8) == ScaleZero{1.0f, 0});
  CHECK(affine(-100, 155, kS8) == ScaleZero{1.0f, -28});
  CHECK(affine(-7, 8, {4, false, false}) == ScaleZero{1.0f, 7});
  CHECK(affine(-1, 2, {2, false, false}) == ScaleZero{1.0f, 1});
}

TEST_CASE("symmetric parameters follow (2)", "[arithmetic][choose_params]") {
  CHECK(symmetric(-254, 10, kNarrow8) == ScaleZero{2.0f, 0});
  CHECK(symmetric(-10, 254, kNarrow8) == ScaleZero{2.0f, 0});
  CHECK(symmetric(-255, 10, kS8) == ScaleZero{2.0f, 0});
  CHECK(symmetric(-255, 10, kU8) == ScaleZero{2.0f, 128});
  CHECK(symmetric(-3, 1, {2, true, true}) == ScaleZero{3.0f, 0});
  CHECK(symmetric(-3, 1, {2, false, false}) == ScaleZero{2.0f, 2});
}

TEST_CASE("activations of 1 bit have zero point 0 and scale max", "[arithmetic][choose_params]") {
  const QType u1{1, false, false};
  CHECK(affine(0, 3, u1) == ScaleZero{3.0f, 0});
  CHECK(affine(-5, 3, u1) == ScaleZero{3.0f, 0});
  CHECK(symmetric(-5, 3, u1) == ScaleZero{3.0f, 0});
  CHECK(affine(-5, 0, u1) == ScaleZero{1.0f, 0});
  // (27): half of the scale is a tie, which goes to 0.
  CHECK(quantize(1.5f, 3.0f, 0, u1.qmin(), u1.qmax()) == 0);
  CHECK(quantize(std::nextafter(1.5f, 2.0f), 3.0f, 0, u1.qmin(), u1.qmax()) == 1);
  CHECK(quantize(-2.0f, 3.0f, 0, u1.qmin(), u1.qmax()) == 0);
}

TEST_CASE("weights of 1 bit are signs, and 0 counts as positive", "[arithmetic][quantize]") {
  CHECK(sign_code(0.5f) == 1);
  CHECK(sign_code(0.0f) == 1);
  CHECK(sign_code(-0.0f) == 1);
  CHECK(sign_code(-kSmallest) == -1);
  CHECK(weight_scale(0.25f, 0.0f, 1.0f, {1, true, true}, "fc") == 0.25f);  // of the mean
}

TEST_CASE("a range is widened to contain 0", "[arithmetic][choose_params]") {
  CHECK(affine(100, 255) == affine(0, 255));
  CHECK(affine(-255, -100) == affine(-255, 0));
  CHECK(affine(255, 255) == affine(0, 255));
}

TEST_CASE("a range whose scale would be 0 or subnormal gives scale 1",
          "[arithmetic][choose_params]") {
  for (const Range range :
       {Range{0, 0}, Range{-0.0f, 0}, Range{0, 1e-40f}, Range{-1e-44f, 1e-45f}}) {
    CHECK(affine(range.min, range.max).scale == 1.0f);
    CHECK(affine(range.min, range.max).zero_point == 0);
    CHECK(affine(range.min, range.max, kS8).zero_point == -128);
    CHECK(symmetric(range.min, range.max, kNarrow8) == ScaleZero{1.0f, 0});
    CHECK(symmetric(range.min, range.max, kU8) == ScaleZero{1.0f, 128});
  }
  CHECK(affine(0, 255 * kSmallest) == ScaleZero{kSmallest, 0});
  CHECK(affine(0, 254 * kSmallest) == ScaleZero{1.0f, 0});
}

TEST_CASE("a range whose length overflows float32 has a finite scale",
          "[arithmetic][choose_params]") {
  CHECK(affine(-kLargest, kLargest).scale == static_cast<float>(2.0 * double{kLargest} / 255));
  CHECK(affine(-kLargest, kLargest, {2, false, false}).scale ==
        static_cast<float>(2.0 * double{kLargest} / 3));
  CHECK(symmetric(-kLargest, kLargest, {2, true, true}).scale == kLargest);
  CHECK(std::isfinite(symmetric(-kLargest, kLargest, {2, true, false}).scale));
}

TEST_CASE("the zero point rounds min / scale, with ties to even", "[arithmetic][choose_params]") {
  CHECK(affine(-2.5f, 252.5f) == ScaleZero{1.0f, 2});
  CHECK(affine(-3.5f, 251.5f) == ScaleZero{1.0f, 4});
  CHECK(affine(-127.5f, 127.5f) == ScaleZero{1.0f, 128});
  CHECK(affine(-127.5f, 127.5f, kS8) == ScaleZero{1.0f, 0});
  // qmin is odd here. With a zero point of half_even(-127 + 126.5) = 0, the minimum -126.5 would
  // get the code -126 instead of -127.
  CHECK(affine(-126.5f, 127.5f, kNarrow8) == ScaleZero{1.0f, -1});
  CHECK(affine(-2.5f, 3.5f, {3, true, true}) == ScaleZero{1.0f, -1});
}

TEST_CASE("at every tie, min gets the lowest code, and max is at most 1 code below the highest",
          "[arithmetic][choose_params]") {
  for (int bits = 2; bits <= 16; ++bits) {
    for (const QType type : {QType{bits, false, false}, {bits, true, false}, {bits, true, true}}) {
      const int32_t qmin = type.qmin();
      const int32_t qmax = type.qmax();
      const auto steps = static_cast<float>(qmax - qmin);
      int64_t min_missed = 0;
      int64_t max_missed = 0;
      int64_t moved = 0;
      for (const float unit : {1.0f, 0.1f, 1.0f / 3.0f}) {
        for (int32_t half = 0; half <= 2 * (qmax - qmin); ++half) {
          const float low = -0.5f * static_cast<float>(half);
          const Range range{low * unit, (low + steps) * unit};
          const auto [scale, zero] = affine(range.min, range.max, type);
          min_missed += unclamped_code(range.min, scale, zero) != static_cast<float>(qmin);
          min_missed += !gradient_passes(range.min, scale, zero, qmin, qmax);
          max_missed += quantize(range.max, scale, zero, qmin, qmax) < qmax - 1;
          // If qmin is even, half_even(qmin - min / scale) equals the zero point. Only narrow types
          // have an odd qmin.
          const double difference = qmin - static_cast<double>(range.min / scale);
          moved += zero != static_cast<int32_t>(std::nearbyint(difference));
        }
      }
      CAPTURE(type);
      CHECK(min_missed == 0);
      CHECK(max_missed == 0);
      CHECK((moved > 0) == type.narrow);
    }
  }
}

TEST_CASE("the zero point uses the float32 quotient that quantizing uses",
          "[arithmetic][choose_params]") {
  // min / scale is -8.5 in float32 and -8.50000015 in double. From the double, the zero point would
  // be 9, and the lowest value of the range would get code 1.
  const ScaleZero params = affine(-0.01f, 0.29f);
  CHECK(params.zero_point == 8);
  CHECK(u8(-0.01f, params.scale, params.zero_point) == 0);
}

TEST_CASE("chosen parameters represent 0 exactly and miss the ends of the range by at most a step",
          "[arithmetic][choose_params]") {
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const float a = any_magnitude(random);
    const float b = a * random.uniform(-2.0f, 2.0f);
    const Range range{std::min(a, b), std::max(a, b)};
    const int bits = 2 + i % 15;
    for (const QType& type :
         {QType{bits, false, false}, QType{bits, true, false}, QType{bits, true, true}}) {
      for (const QScheme scheme : {QScheme::kAffine, QScheme::kSymmetric}) {
        const auto [scale, zero] = choose_params(range, type, scheme, "fc");
        REQUIRE((std::isnormal(scale) && scale > 0));
        REQUIRE((zero >= type.qmin() && zero <= type.qmax()));
        REQUIRE(quantize(0.0f, scale, zero, type.qmin(), type.qmax()) == zero);
        REQUIRE(dequantize(zero, scale, zero) == 0.0f);
        for (const float end : {range.min, range.max}) {
          const int32_t code = quantize(end, scale, zero, type.qmin(), type.qmax());
          const auto real = static_cast<double>(dequantize(code, scale, zero));
          // There are three errors: rounding the zero point moves one end by up to half a step,
          // rounding to the nearest code adds up to half a step, and the scale and the product
          // are rounded to float32.
          const double limit = static_cast<double>(scale) * (1.0 + type.levels() * 0x1p-23);
          REQUIRE(std::abs(static_cast<double>(end) - real) <= limit);
        }
      }
    }
  }
}

TEST_CASE("a range that is not finite or not in order is refused", "[arithmetic][choose_params]") {
  for (const Range range :
       {Range{0, kNan}, Range{kNan, 0}, Range{-kInfinity, 0}, Range{0, kInfinity}, Range{1, 0}}) {
    for (const QScheme scheme : {QScheme::kAffine, QScheme::kSymmetric}) {
      QUANTRAIN_CHECK_ERROR(
          choose_params(range, kU8, scheme, "block1.conv"), DataError, "[block1.conv] range [");
    }
  }
}

TEST_CASE("per-channel parameters are chosen from the range of each channel",
          "[arithmetic][choose_params]") {
  const std::array ranges{Range{0, 255}, Range{-256, 254}};
  CHECK(choose_params(ranges, 3, kU8, QScheme::kAffine, "fc") == QParams{kU8, 3, {1, 2}, {0, 128}});
  QUANTRAIN_CHECK_ERROR(
      choose_params(ranges, -1, kU8, QScheme::kAffine, "fc"), QuantError, "[fc] per-tensor");
  QUANTRAIN_CHECK_ERROR(
      choose_params(ranges, 3, {0, false, false}, QScheme::kAffine, "fc"), QuantError, "bits");
}

TEST_CASE("ties round to the even quotient, before the zero point is added",
          "[arithmetic][quantize]") {
  CHECK(half_even(0.5f) == 0.0f);
  CHECK(half_even(1.5f) == 2.0f);
  CHECK(half_even(2.5f) == 2.0f);
  CHECK(half_even(-0.5f) == 0.0f);
  CHECK(half_even(-1.5f) == -2.0f);
  CHECK(half_even(4194303.5f) == 4194304.0f);  // a large tie; the even neighbour is above
  // If the zero point were added before rounding, 0.5 + 1 would become 2.
  CHECK(u8(0.5f, 1.0f, 1) == 1);
  CHECK(u8(1.5f, 1.0f, 1) == 3);
  CHECK(u8(-0.5f, 1.0f, 1) == 1);
  CHECK(u8(-1.5f, 1.0f, 3) == 1);
}

TEST_CASE("quantizing divides: multiplying by the reciprocal would differ",
          "[arithmetic][quantize]") {
  // In float32 the quotient is the tie 13.5, but the product is 13.499999.
  const float scale = 1.0f / 7.0f;
  const float x = 13.5f * scale;
  CHECK(x / scale == 13.5f);
  CHECK(x * (1.0f / scale) < 13.5f);
  CHECK(u8(x, scale, 0) == 14);
  // Here the product is the tie 3.5, but the quotient is smaller.
  const float other = 1.0f / 11.0f;
  CHECK(3.5f * other / other < 3.5f);
  CHECK(3.5f * other * (1.0f / other) == 3.5f);
  CHECK(u8(3.5f * other, other, 0) == 3);
}

TEST_CASE("codes are clamped, however far the value is out of range", "[arithmetic][quantize]") {
  CHECK(u8(-1.0f, 1.0f, 0) == 0);
  CHECK(u8(255.5f, 1.0f, 0) == 255);  // tie: 256, clamped
  CHECK(u8(3e38f, 1e-30f, 128) == 255);
  CHECK(u8(-3e38f, 1e-30f, 128) == 0);
  CHECK(u8(kInfinity, 1.0f, 128) == 255);
  CHECK(u8(-kInfinity, 1.0f, 128) == 0);
  CHECK(quantize(-128.0f, 1.0f, 0, -127, 127) == -127);
}

TEST_CASE("the gradient passes where the unclamped code is in the code range",
          "[arithmetic][gradient]") {
  const auto passes = [](float x) { return gradient_passes(x, 1.0f, 3, 0, 255); };
  CHECK(passes(0.0f));
  CHECK(passes(-3.0f));
  CHECK(passes(252.0f));
  CHECK_FALSE(passes(-4.0f));
  CHECK_FALSE(passes(253.0f));
  // At a tie, the rounded code decides, not the real value.
  CHECK_FALSE(passes(-3.5f));
  CHECK(passes(252.5f));
  CHECK(passes(-3.4f));
  CHECK_FALSE(passes(252.6f));
  CHECK_FALSE(passes(3e38f));
  CHECK_FALSE(passes(-3e38f));
}

TEST_CASE("the gradient passes exactly where the clamp changes nothing", "[arithmetic][gradient]") {
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    const float scale = std::abs(any_magnitude(random)) + kSmallest;
    const float x = scale * random.uniform(-400.0f, 400.0f);
    const auto zero = static_cast<int32_t>(random.below(256));
    const bool unchanged = unclamped_code(x, scale, zero) == static_cast<float>(u8(x, scale, zero));
    REQUIRE(gradient_passes(x, scale, zero, 0, 255) == unchanged);
  }
}

TEST_CASE("the largest weight sets the scale unless the bias needs a larger scale",
          "[arithmetic][weight_scale]") {
  CHECK(weight_scale(254.0f, 0.0f, 1.0f, kNarrow8, "fc") == 2.0f);
  CHECK(weight_scale(255.0f, 0.0f, 1.0f, kS8, "fc") == 2.0f);
  CHECK(weight_scale(2.0f, 0.0f, 1.0f, {2, true, true}, "fc") == 2.0f);
  CHECK(weight_scale(254.0f, 0x1p31f, 1.0f, kNarrow8, "fc") == 2.0f);
  CHECK(weight_scale(254.0f, -0x1p32f, 1.0f, kNarrow8, "fc") == 4.0f);
  CHECK(weight_scale(0.0f, 0x1p30f, 0.5f, kNarrow8, "fc") == 2.0f);
  CHECK(weight_scale(0.0f, 0.0f, 1.0f, kNarrow8, "fc") == 1.0f);
  CHECK(weight_scale(1e-41f, 0.0f, 1.0f, kNarrow8, "fc") == 1.0f);
}

TEST_CASE("invalid weights, biases and input scales are refused", "[arithmetic][weight_scale]") {
  for (const float bad : {kNan, kInfinity}) {
    QUANTRAIN_CHECK_ERROR(weight_scale(bad, 0, 1, kNarrow8, "fc"), DataError, "[fc] weight");
    QUANTRAIN_CHECK_ERROR(weight_scale(1, -bad, 1, kNarrow8, "fc"), DataError, "not finite");
    QUANTRAIN_CHECK_ERROR(weight_scale(1, 0, bad, kNarrow8, "fc"), DataError, "not finite");
  }
  for (const float scale : {0.0f, -1.0f}) {
    QUANTRAIN_CHECK_ERROR(weight_scale(1, 0, scale, kNarrow8, "fc"), QuantError, "not positive");
  }
  QUANTRAIN_CHECK_ERROR(weight_scale(1, 3e38f, 1e-30f, kNarrow8, "fc"),
                        QuantError,
                        "bias 3e+38 is too large at input scale 1e-30");
}

TEST_CASE("a bias halfway between two codes rounds to the even code", "[arithmetic][bias]") {
  CHECK(quantize_bias(0.5f, 1.0f, 1.0f) == 0);
  CHECK(quantize_bias(1.5f, 1.0f, 1.0f) == 2);
  CHECK(quantize_bias(-2.5f, 1.0f, 1.0f) == -2);
  CHECK(quantize_bias(-0.75f, 0.5f, 0.5f) == -3);
}

TEST_CASE("a bias is quantized in double", "[arithmetic][bias]") {
  // In float32, scale_x * scale_w would be rounded, the quotient would be rounded again, and the
  // code would be 3620999.
  const float scale_x = 1.0f / 255.0f;
  CHECK(quantize_bias(142 * 0.1f, scale_x, 0.001f) == 3621000);
  CHECK(half_even(142 * 0.1f / (scale_x * 0.001f)) == 3620999.0f);
}

TEST_CASE("a bias fits if the weight's scale was chosen for it", "[arithmetic][bias]") {
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const float scale_x = std::abs(any_magnitude(random)) + kSmallest;
    const float max_abs = std::abs(any_magnitude(random));
    const float bias = any_magnitude(random);
    if (std::abs(double{bias}) / (double{scale_x} * 0x1p30) > double{kLargest}) continue;
    const float scale_w = weight_scale(max_abs, bias, scale_x, kNarrow8, "fc");
    REQUIRE(std::abs(quantize_bias(bias, scale_x, scale_w)) <= 1 << 30);
  }
  // The scale that the bias needs may be rounded down to float32. The code still stays within 2^30.
  const int32_t code = quantize_bias(1.1f, 0.3f, weight_scale(0.0f, 1.1f, 0.3f, kNarrow8, "fc"));
  CHECK((code >= (1 << 30) - 64 && code <= 1 << 30));
}

TEST_CASE("a bias that does not fit is refused", "[arithmetic][bias]") {
  CHECK(quantize_bias(0x1p30f, 1.0f, 1.0f) == 1 << 30);
  CHECK(quantize_bias(-0x1p30f, 1.0f, 1.0f) == -(1 << 30));
  CHECK(quantize_bias(0x1p30f + 0x1p7f, 1.0f, 1.0f) == 1 << 30);  // clamped
  QUANTRAIN_CHECK_ERROR(quantize_bias(0x1p30f + 0x1p8f, 1.0f, 1.0f), QuantError, "exceeds 2^30");
  QUANTRAIN_CHECK_ERROR(quantize_bias(1.001f * 0x1p30f, 1.0f, 1.0f), QuantError, "exceeds 2^30");
  QUANTRAIN_CHECK_ERROR(quantize_bias(kNan, 1.0f, 1.0f), QuantError, "exceeds 2^30");
  QUANTRAIN_CHECK_ERROR(quantize_bias(1.0f, 0.0f, 1.0f), QuantError, "exceeds 2^30");
}

}  // namespace quantrain
