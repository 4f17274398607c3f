#include "framework/arithmetic/fixed_point.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr int32_t kOne = 1 << 30;  // the mantissa of every power of two

int32_t unclamped(int32_t acc, Multiplier multiplier) {
  return requantize(acc, multiplier, 0, kMin32, kMax32);
}

// floor(product / 2^shift + 1/2) computed without shifting a negative number.
int64_t nearest(int64_t product, int32_t shift) {
  const int64_t step = int64_t{1} << shift;
  int64_t quotient = product / step;
  int64_t rest = product % step;
  if (rest < 0) {
    rest += step;
    --quotient;
  }
  return quotient + (rest >= step - rest ? 1 : 0);
}

// Requantizes like gemmlowp and like TFLite's default: multiplies by m0 / 2^31 and rounds, then
// divides by a power of two and rounds again. Source: gemmlowp, fixedpoint/fixedpoint.h.
int32_t gemmlowp(int32_t acc, Multiplier multiplier) {
  const int64_t product = int64_t{acc} * multiplier.m0;
  const int64_t nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
  const auto high = static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
  const int32_t exponent = multiplier.shift - 31;
  const auto mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t threshold = (mask >> 1) + (high < 0 ? 1 : 0);
  return (high >> exponent) + ((high & mask) > threshold ? 1 : 0);
}

}  // namespace

TEST_CASE("a multiplier is a 31-bit mantissa and a shift", "[arithmetic][requantize]") {
  CHECK(make_multiplier(1.0) == Multiplier{kOne, 30});
  CHECK(make_multiplier(0.5) == Multiplier{kOne, 31});
  CHECK(make_multiplier(0.75) == Multiplier{kOne + kOne / 2, 31});
  CHECK(make_multiplier(0x1p-31) == Multiplier{kOne, 61});
  CHECK(make_multiplier(1.0 / 3.0) == Multiplier{1431655765, 32});
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const double m = std::ldexp(0.5 + 0.5 * static_cast<double>(random.uniform()),
                                static_cast<int>(random.below(60)) - 30);
    const Multiplier multiplier = make_multiplier(m);
    REQUIRE(multiplier.m0 >= kOne);
    REQUIRE((multiplier.shift >= 1 && multiplier.shift <= 62));
    // m0 is at least 2^30, and its rounding error is at most 1/2.
    REQUIRE(std::abs(std::ldexp(multiplier.m0, -multiplier.shift) - m) <= m * 0x1p-31);
  }
}

TEST_CASE("a mantissa that rounds to 2^31 is halved", "[arithmetic][requantize]") {
  CHECK(make_multiplier(std::nextafter(1.0, 0.0)) == Multiplier{kOne, 30});
  // 2^31 - 1/2 is the smallest mantissa that rounds to 2^31: llround takes ties upward.
  CHECK(make_multiplier((0x1p31 - 0.5) * 0x1p-31) == Multiplier{kOne, 30});
  CHECK(make_multiplier((0x1p31 - 0.75) * 0x1p-31) == Multiplier{kMax32, 31});
}

TEST_CASE("shifts range from 1 to 62", "[arithmetic][requantize]") {
  CHECK(make_multiplier(0x1p29) == Multiplier{kOne, 1});
  CHECK(make_multiplier((0x1p31 - 1) * 0x1p-1) == Multiplier{kMax32, 1});
  CHECK(make_multiplier(0x1p-32) == Multiplier{kOne, 62});
  CHECK(make_multiplier(0x1p-33) == Multiplier{0, 62});
  // Renormalisation brings a shift of 63 back to 62.
  CHECK(make_multiplier(std::nextafter(0x1p-32, 0.0)) == Multiplier{kOne, 62});
  CHECK(make_multiplier((0x1p31 - 1) * 0x1p-63) == Multiplier{0, 62});
  CHECK(make_multiplier(1e-300) == Multiplier{0, 62});
  CHECK(make_multiplier(5e-324) == Multiplier{0, 62});
  CHECK(make_multiplier(0.0) == Multiplier{0, 62});
  for (const int32_t acc : {kMin32, -1, 0, 1, kMax32}) {
    CHECK(unclamped(acc, make_multiplier(0.0)) == 0);
  }
}

TEST_CASE("a multiplier that makes no sense is refused", "[arithmetic][requantize]") {
  for (const double m : {-1.0,
                         -1e-300,
                         std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN()}) {
    QUANTRAIN_CHECK_ERROR(make_multiplier(m), QuantError, "negative or not finite");
    QUANTRAIN_CHECK_ERROR(make_add_multipliers({m, 1.0}), QuantError, "negative or not finite");
    QUANTRAIN_CHECK_ERROR(make_add_multipliers({1.0, m}), QuantError, "negative or not finite");
  }
  QUANTRAIN_CHECK_ERROR(make_multiplier(0x1p30), QuantError, "2^30 or more");
  QUANTRAIN_CHECK_ERROR(make_multiplier(std::nextafter(0x1p30, 0.0)), QuantError, "2^30 or more");
  QUANTRAIN_CHECK_ERROR(
      make_multiplier(1e300), QuantError, "2^30 or more: the output's scale is too small");
  QUANTRAIN_CHECK_ERROR(make_add_multipliers({1.0, 0x1p30}), QuantError, "2^30 or more");
}

TEST_CASE("requantizing rounds ties toward plus infinity", "[arithmetic][requantize]") {
  const Multiplier half{kOne, 31};
  CHECK(unclamped(1, half) == 1);    // 0.5
  CHECK(unclamped(3, half) == 2);    // 1.5
  CHECK(unclamped(5, half) == 3);    // 2.5: rounding to even would give 2
  CHECK(unclamped(-1, half) == 0);   // -0.5: rounding away from 0 would give -1
  CHECK(unclamped(-3, half) == -1);  // -1.5: rounding to even or away from 0 would give -2
  CHECK(unclamped(-5, half) == -2);  // -2.5: rounding away from 0 would give -3
  const Multiplier eighth = make_multiplier(0.125);
  CHECK(unclamped(-4500, eighth) == -562);  // -562.5
  CHECK(unclamped(4500, eighth) == 563);
}

TEST_CASE("requantizing rounds once, gemmlowp rounds twice", "[arithmetic][requantize]") {
  const Multiplier quarter = make_multiplier(0.25);
  // 0.25: gemmlowp first rounds 0.5 to 1, then rounds 1 / 2 to 1.
  CHECK(gemmlowp(1, quarter) == 1);
  CHECK(unclamped(1, quarter) == 0);
  // -0.5, a tie: gemmlowp's second step rounds away from 0.
  CHECK(gemmlowp(-2, quarter) == -1);
  CHECK(unclamped(-2, quarter) == 0);
  // -1.5: gemmlowp rounds away from 0, and requantize() rounds up.
  CHECK(gemmlowp(-6, quarter) == -2);
  CHECK(unclamped(-6, quarter) == -1);
  // Here gemmlowp's two roundings give the same result as one.
  const Multiplier usual = make_multiplier(0.0123);
  CHECK(gemmlowp(1000, usual) == unclamped(1000, usual));
}

TEST_CASE("the zero point is added in 64 bits and the clamp comes last",
          "[arithmetic][requantize]") {
  const Multiplier largest{kMax32, 1};
  CHECK(requantize(kMax32, largest, 255, 0, 255) == 255);
  CHECK(requantize(kMin32, largest, 255, 0, 255) == 0);
  CHECK(requantize(kMin32, largest, 0, kMin32, kMax32) == kMin32);
  CHECK(requantize(kMax32, make_multiplier(1.0), 255, kMin32, kMax32) == kMax32);
  CHECK(requantize(-300, make_multiplier(1.0), 128, 0, 255) == 0);
  CHECK(requantize(-100, make_multiplier(1.0), 128, 0, 255) == 28);
  CHECK(requantize(-100, make_multiplier(1.0), 128, 128, 255) == 128);
}

TEST_CASE("requantizing gives the nearest integer, and so does its unsigned form",
          "[arithmetic][requantize]") {
  std::vector<int32_t> accumulators{kMin32, kMin32 + 1, -1, 0, 1, kMax32 - 1, kMax32};
  std::vector<int32_t> mantissas{0, kOne, kOne + 1, kMax32 - 1, kMax32};
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    accumulators.push_back(static_cast<int32_t>(static_cast<uint32_t>(random.bits())));
    accumulators.push_back(static_cast<int32_t>(random.below(2001)) - 1000);
  }
  for (int i = 0; i < 40; ++i) {
    mantissas.push_back(kOne + static_cast<int32_t>(random.below(kOne)));
  }
  for (int32_t shift = 1; shift <= 62; ++shift) {
    CAPTURE(shift);
    bool equal = true;
    for (const int32_t m0 : mantissas) {
      for (const int32_t acc : accumulators) {
        const int64_t product = int64_t{acc} * m0;
        const int64_t expected = nearest(product, shift);
        equal = equal && rounding_shift(product, shift) == expected &&
                rounding_shift_unsigned(product, shift) == expected;
      }
    }
    CHECK(equal);
    for (const int64_t extreme : {-(int64_t{1} << 62), int64_t{1} << 62}) {
      CHECK(rounding_shift_unsigned(extreme, shift) == nearest(extreme, shift));
    }
  }
}

TEST_CASE("an addition has one shift, that of the larger multiplier", "[arithmetic][add]") {
  CHECK(make_add_multipliers({1.0, 0.5}) == AddMultipliers{{kOne, kOne / 2}, 30});
  CHECK(make_add_multipliers({0.25, 0.5}) == AddMultipliers{{kOne / 2, kOne}, 31});
  CHECK(make_add_multipliers({0.75, 0.75}) == AddMultipliers{{kOne / 2 * 3, kOne / 2 * 3}, 31});
  CHECK(make_add_multipliers({1.0, 0.0}) == AddMultipliers{{kOne, 0}, 30});
  CHECK(make_add_multipliers({0.0, 0.0}) == AddMultipliers{{0, 0}, 62});
  // The smaller multiplier is scaled by the common shift before it is rounded. Here
  // 2^-31 * 2^30 = 1/2, which llround rounds up.
  CHECK(make_add_multipliers({1.0, 0x1p-31}) == AddMultipliers{{kOne, 1}, 30});
  CHECK(make_add_multipliers({1.0, 0x1p-32}) == AddMultipliers{{kOne, 0}, 30});
  // Both multipliers are just below 1, so their mantissas are renormalised.
  CHECK(make_add_multipliers({std::nextafter(1.0, 0.0), std::nextafter(1.0, 0.0)}) ==
        AddMultipliers{{kOne, kOne}, 30});
  // If the larger multiplier needs a shift above 62 and becomes 0, so does the smaller one.
  CHECK(make_add_multipliers({0x1p-33, 0x1p-34}) == AddMultipliers{{0, 0}, 62});
}

TEST_CASE("an addition of any number of operands has one shift", "[arithmetic][add]") {
  CHECK(make_add_multipliers({1.0, 0.25, 0.5}) == AddMultipliers{{kOne, kOne / 4, kOne / 2}, 30});
  CHECK(make_add_multipliers({0.125, 0.125, 0.25, 0.0}) ==
        AddMultipliers{{kOne / 2, kOne / 2, kOne, 0}, 32});
  CHECK(make_add_multipliers({0.5}) == AddMultipliers{{kOne}, 31});
  CHECK(make_add_multipliers({}) == AddMultipliers{{}, 62});
  CHECK(make_add_multipliers({0x1p-33, 0x1p-40, 0x1p-33}) == AddMultipliers{{0, 0, 0}, 62});
  // Every multiplier is checked, not only the largest.
  QUANTRAIN_CHECK_ERROR(make_add_multipliers({1.0, 1.0, -1.0}), QuantError, "negative");
  QUANTRAIN_CHECK_ERROR(
      make_add_multipliers({std::nan(""), 1.0, 2.0}), QuantError, "negative or not finite: nan");
}

TEST_CASE("the error of a sum of many operands is within its bound", "[arithmetic][add]") {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const auto count = static_cast<size_t>(1 + random.below(40));
    std::vector<double> multipliers;
    std::vector<int32_t> x;
    double exact = 0.0;
    for (size_t k = 0; k < count; ++k) {
      multipliers.push_back(std::ldexp(1.0 + static_cast<double>(random.uniform()),
                                       static_cast<int>(random.below(16)) - 12));
      x.push_back(static_cast<int32_t>(random.below(511)) - 255);
      exact += x[k] * multipliers[k];
    }
    const AddMultipliers m = make_add_multipliers(multipliers);
    const int32_t sum = requantize_add(x, m, 0, kMin32, kMax32);
    const double bound = 0.5 + static_cast<double>(count) * 255 * std::ldexp(0.5001, -m.shift);
    REQUIRE(std::abs(sum - exact) <= bound);
  }
}

TEST_CASE("an addition rounds once, ties toward plus infinity", "[arithmetic][add]") {
  const AddMultipliers halves = make_add_multipliers({0.5, 0.5});
  const auto add = [&](int32_t a, int32_t b) {
    return requantize_add({a, b}, halves, 0, -128, 127);
  };
  CHECK(add(1, 1) == 1);     // 0.5 + 0.5: rounding each operand would give 2
  CHECK(add(1, 2) == 2);     // 1.5
  CHECK(add(-1, 0) == 0);    // -0.5
  CHECK(add(-1, -2) == -1);  // -1.5
  // 0.5 + 0.5 + 0.5 = 1.5 is rounded once, to 2. Rounding each operand would give 3.
  CHECK(requantize_add({1, 1, 1}, make_add_multipliers({0.5, 0.5, 0.5}), 0, -128, 127) == 2);
  QUANTRAIN_CHECK_ERROR(
      requantize_add({1, 1}, make_add_multipliers({0.5}), 0, -128, 127),
      ShapeError,
      "[requantize] a sum takes a multiplier for each operand, got 1 multipliers for "
      "2 operands");
  CHECK(requantize_add({1, 1, 1}, make_add_multipliers({0.4, 0.4, 0.4}), 0, -128, 127) == 1);
  CHECK(add(255, 255) == 127);
  CHECK(add(-255, -255) == -128);
  CHECK(requantize_add({3, 4}, make_add_multipliers({1.0, 0.25}), 10, 0, 255) == 14);
  CHECK(requantize_add({-200, -200}, make_add_multipliers({1.0, 1.0}), 10, 10, 255) == 10);
}

TEST_CASE("an addition differs from the real sum only by rounding", "[arithmetic][add]") {
  Random random(4);
  const auto multiplier = [&] {
    return std::ldexp(1.0 + static_cast<double>(random.uniform()),
                      static_cast<int>(random.below(16)) - 8);
  };
  for (int i = 0; i < 5000; ++i) {
    const double a = multiplier();
    const double b = multiplier();
    const auto qa = static_cast<int32_t>(random.below(511)) - 255;
    const auto qb = static_cast<int32_t>(random.below(511)) - 255;
    const int32_t sum = requantize_add({qa, qb}, make_add_multipliers({a, b}), 0, kMin32, kMax32);
    // The error of each multiplier is at most 2^-(shift + 1), which is at most 2^-31 times the
    // larger multiplier.
    REQUIRE(std::abs(sum - (qa * a + qb * b)) <= 0.5 + 2 * 255 * std::max(a, b) * 0x1p-31);
  }
}

TEST_CASE("multipliers are quotients of scales", "[arithmetic][fixed_point]") {
  // Scales of different sizes, none of them a power of two.
  constexpr float kA = 0.7f;
  constexpr float kB = 1.1f;
  constexpr float kY = 0.3f;
  const double a = double{kA};
  const double b = double{kB};
  const double y = double{kY};
  CHECK(sum_scale(kA, kB) == a * b);
  CHECK(sum_multiplier(sum_scale(kA, kB), kY) == make_multiplier(a * b / y));
  CHECK(rescale_multiplier(kA, kY) == make_multiplier(a / y));
  CHECK(add_multipliers({kA, kB}, kY) == make_add_multipliers({a / y, b / y}));
  CHECK(mean_multiplier(kA, 1, kY) == make_multiplier(a / y));
  CHECK(mean_multiplier(kA, 2, kY) == make_multiplier(a / (2 * y)));
  CHECK(mean_multiplier(kA, 3, kY) == make_multiplier(a / (3 * y)));
}

}  // namespace quantrain
