#include "framework/arithmetic/qparams.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

template <class T>
std::string printed(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

}  // namespace

TEST_CASE("the range of a type's codes follows docs/quantization.md (1)", "[arithmetic][qparams]") {
  for (int bits = 2; bits <= 16; ++bits) {
    const int32_t half = 1 << (bits - 1);
    const QType u{bits, false, false};
    const QType s{bits, true, false};
    const QType narrow{bits, true, true};
    CHECK((u.qmin() == 0 && u.qmax() == 2 * half - 1 && u.levels() == 2 * half));
    CHECK((s.qmin() == -half && s.qmax() == half - 1 && s.levels() == 2 * half));
    CHECK((narrow.qmin() == 1 - half && narrow.qmax() == half - 1));
    CHECK(narrow.levels() == 2 * half - 1);
    CHECK_FALSE(narrow.is_sign());
  }
}

TEST_CASE("codes of 1 bit are 0 and 1, or -1 and +1", "[arithmetic][qparams]") {
  const QType u{1, false, false};
  CHECK((u.qmin() == 0 && u.qmax() == 1 && u.levels() == 2 && !u.is_sign()));
  const QType sign{1, true, true};
  CHECK((sign.qmin() == -1 && sign.qmax() == 1 && sign.levels() == 2 && sign.is_sign()));
}

TEST_CASE("the float range spans the values of the lowest and the highest code",
          "[arithmetic][qparams]") {
  const QParams params{{8, false, false}, 0, {0.5f, 2.0f}, {128, 0}};
  CHECK(params.float_range(0) == Range{-64.0f, 63.5f});
  CHECK(params.float_range(1) == Range{0.0f, 510.0f});
  CHECK(params.per_channel());
}

TEST_CASE("types and parameters print in readable form", "[arithmetic][qparams]") {
  CHECK(printed(QType{8, false, false}) == "u8");
  CHECK(printed(QType{4, true, false}) == "s4");
  CHECK(printed(QType{8, true, true}) == "s8 narrow");
  CHECK(printed(QType{1, false, false}) == "u1");
  CHECK(printed(QParams{{8, false, false}, -1, {0.5f}, {3}}) == "u8 scale 0.5 zero point 3");
  CHECK(printed(QParams{{8, true, true}, 0, {1, 1}, {0, 0}}) ==
        "s8 narrow per channel (2, axis 0)");
  CHECK(printed(QParams{}) == "u8 without parameters");
}

TEST_CASE("parameters that make no sense are refused", "[arithmetic][qparams]") {
  const QType u8{8, false, false};
  validate(QParams{u8, -1, {1}, {255}}, "fc");
  validate(QParams{{16, true, false}, 1, {1, 2}, {0, -32768}}, "fc");
  QUANTRAIN_CHECK_ERROR(validate(QType{0, false, false}, "fc"), QuantError, "[fc] bits must be 1");
  QUANTRAIN_CHECK_ERROR(validate(QType{1, true, false}, "fc"), QuantError, "their range is narrow");
  validate(QParams{{1, true, true}, 0, {1, 2}, {0, 0}}, "fc");
  validate(QParams{{1, false, false}, -1, {1}, {0}}, "fc");
  QUANTRAIN_CHECK_ERROR(validate(QType{17, false, false}, "fc"), QuantError, "got 17");
  QUANTRAIN_CHECK_ERROR(validate(QType{8, false, true}, "fc"), QuantError, "signed codes");
  const auto refuse = [](const QParams& params, const std::string& text) {
    QUANTRAIN_CHECK_ERROR(validate(params, "fc"), QuantError, text);
  };
  refuse({{0, false, false}, -1, {1}, {0}}, "bits must be 1 to 16");
  refuse({u8, -1, {}, {}}, "got 0 scales and 0 zero points");
  refuse({u8, 0, {1, 1}, {0}}, "got 2 scales and 1 zero points");
  refuse({u8, -1, {1, 1}, {0, 0}}, "per-tensor parameters with 2 scales");
  for (const float scale : {0.0f,
                            -1.0f,
                            1e-40f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    refuse({u8, 0, {1, scale}, {0, 0}}, "scale of channel 1 is not positive, finite and normal");
  }
  refuse({u8, -1, {1}, {256}}, "is not a code: 256, codes are [0, 255]");
  refuse({{8, true, true}, -1, {1}, {-128}}, "codes are [-127, 127]");
}

}  // namespace quantrain
