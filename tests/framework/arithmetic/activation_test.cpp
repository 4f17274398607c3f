#include "framework/arithmetic/activation.hpp"

#include "tests/catch.hpp"

namespace quantrain {
namespace {

bool clamps(const CodeClamp& clamp, int32_t lo, int32_t hi) {
  return clamp.lo == lo && clamp.hi == hi;
}

}  // namespace

TEST_CASE("ReLU and ReLU6 clamp the codes", "[arithmetic][activation]") {
  const QType u8{8, false, false};
  const QType s4{4, true, false};
  CHECK(clamps(code_clamp(Activation::kNone, u8, 0.1f, 10), 0, 255));
  CHECK(clamps(code_clamp(Activation::kRelu, u8, 0.1f, 10), 10, 255));
  CHECK(clamps(code_clamp(Activation::kRelu6, u8, 0.1f, 10), 10, 70));
  CHECK(clamps(code_clamp(Activation::kNone, s4, 1.0f, -8), -8, 7));
  CHECK(clamps(code_clamp(Activation::kRelu, s4, 1.0f, -3), -3, 7));
  CHECK(clamps(code_clamp(Activation::kRelu6, s4, 1.0f, -3), -3, 3));
}

TEST_CASE("the bounds of a clamp are codes", "[arithmetic][activation]") {
  const QType u8{8, false, false};
  CHECK(clamps(code_clamp(Activation::kRelu6, u8, 0.01f, 0), 0, 255));  // 6 exceeds 255 * 0.01
  CHECK(clamps(code_clamp(Activation::kRelu6, u8, 0.01f, 255), 255, 255));
  CHECK(clamps(code_clamp(Activation::kRelu6, u8, 100.0f, 3), 3, 3));  // 6 rounds to the code of 0
}

TEST_CASE("clamped codes are the codes of the clamped value", "[arithmetic][activation]") {
  const QType u8{8, false, false};
  for (const int32_t zero : {0, 7, 128, 255}) {
    for (const float scale : {0.013f, 0.05f, 1.0f}) {
      const CodeClamp relu = code_clamp(Activation::kRelu, u8, scale, zero);
      const CodeClamp relu6 = code_clamp(Activation::kRelu6, u8, scale, zero);
      const auto code = [&](float value) { return quantize(value, scale, zero, 0, 255); };
      for (int i = -200; i < 200; ++i) {
        const float x = 0.05f * static_cast<float>(i);
        REQUIRE(std::clamp(code(x), relu.lo, relu.hi) == code(std::max(x, 0.0f)));
        REQUIRE(std::clamp(code(x), relu6.lo, relu6.hi) == code(std::clamp(x, 0.0f, 6.0f)));
      }
    }
  }
}

}  // namespace quantrain
