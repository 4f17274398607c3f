#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/arithmetic/quantize.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

TEST_CASE("codes and gradient masks of floats follow (3) and (4)", "[kernels][integer]") {
  Random random(11);
  const QuantizeF32 parameters[] = {{0.017f, 120, 0, 255, 0},
                                    {0.5f, 0, -128, 127, 128},
                                    {0.3f, 7, 0, 15, 0},
                                    {1e-3f, 0, -127, 127, 128},
                                    {1.0f, 0, -1, 1, 128},
                                    {0.02f, 0, -127, 127, 0},  // weights: signed bytes
                                    {0.7f, 0, -8, 7, 0},
                                    {0.017f, 120, 0, 255, 0, 0.63f},
                                    {0.02f, 0, -127, 127, 0, -1.7f}};
  for (const QuantizeF32& q : parameters) {
    for (const int64_t n : kSizes) {
      std::vector<float> x = random_floats(n, 4.0f, random);
      for (size_t i = 0; i < x.size(); ++i) {
        if (i % 5 == 0)
          x[i] = (static_cast<float>(random.below(300) - 150) + 0.5f) * q.scale;  // ties
        if (i % 31 == 7) x[i] = i % 2 == 0 ? 1.5e38f : -1.5e38f;
      }
      for_each_isa([&] {
        CAPTURE(n, q.scale);
        std::vector<uint8_t> codes(x.size());
        std::vector<uint8_t> mask(bytes(n), 0xaa);
        REQUIRE(quantize_f32_u8(n, x.data(), q, codes.data(), mask.data()));
        bool equal = true;
        for (size_t i = 0; i < x.size(); ++i) {
          const float v = x[i] * q.factor;
          equal = equal &&
                  codes[i] == static_cast<uint8_t>(
                                  quantize(v, q.scale, q.zero_point, q.qmin, q.qmax) + q.offset) &&
                  bit(mask, i) == gradient_passes(v, q.scale, q.zero_point, q.qmin, q.qmax);
        }
        CHECK(equal);
        std::vector<uint8_t> without_mask(x.size());
        CHECK(quantize_f32_u8(n, x.data(), q, without_mask.data(), nullptr));
        CHECK(without_mask == codes);
      });
    }
  }
}

TEST_CASE("quantization after a ReLU equals a ReLU and then a quantization", "[kernels][integer]") {
  const float infinity = std::numeric_limits<float>::infinity();
  Random random(12);
  for (const float bound : {infinity, 6.0f}) {
    for (const QuantizeF32& q : {QuantizeF32{0.017f, 0, 0, 255, 0},
                                 QuantizeF32{0.03f, 120, 0, 255, 0},
                                 QuantizeF32{0.02f, -128, -128, 127, 128},
                                 QuantizeF32{0.3f, 0, 0, 15, 0}}) {
      for (const int64_t n : kSizes) {
        std::vector<float> x = random_floats(n, 8.0f, random);
        const float special[] = {0.0f, -0.0f, 6.0f, std::nextafter(6.0f, 0.0f), 1e-42f, -infinity};
        for (size_t i = 0; i < x.size(); i += 7) x[i] = special[i % std::size(special)];
        for_each_isa([&] {
          CAPTURE(n, q.scale, bound);
          std::vector<float> y(x.size());
          std::vector<uint8_t> positive(bytes(n)), passes(bytes(n)), mask(bytes(n));
          std::vector<uint8_t> expected(x.size()), codes(x.size());
          relu_f32(n, x.data(), bound, y.data(), positive.data());
          REQUIRE(quantize_f32_u8(n, y.data(), q, expected.data(), passes.data()));
          QuantizeF32 fused = q;
          fused.bound = bound;
          REQUIRE(quantize_f32_u8(n, x.data(), fused, codes.data(), mask.data()));
          CHECK(codes == expected);
          for (size_t i = 0; i < mask.size(); ++i) passes[i] &= positive[i];
          CHECK(mask == passes);
          if (n == 0) return;
          std::vector<float> bad = x;
          bad[static_cast<size_t>(random.below(n))] = std::nanf("");
          CHECK_FALSE(quantize_f32_u8(n, bad.data(), fused, codes.data(), mask.data()));
        });
      }
    }
  }
}

TEST_CASE("quantization divides and rounds ties to even", "[kernels][integer]") {
  // All values are ties. 17.5 rounds to 18, which is even.
  const float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 17.5f};
  for_each_isa([&] {
    uint8_t codes[6];
    CHECK(quantize_f32_u8(6, x, {1.0f, 100, 0, 255, 0}, codes, nullptr));
    CHECK(std::vector<int>(codes, codes + 6) == std::vector<int>{100, 102, 102, 100, 98, 118});
  });
}

TEST_CASE("quantization reports a value that is not finite at any position", "[kernels][integer]") {
  const float infinity = std::numeric_limits<float>::infinity();
  for_each_isa([&] {
    for (const int64_t n : {1, 5, 16, 33}) {
      for (int64_t i = 0; i < n; ++i) {
        for (const float bad : {std::nanf(""), infinity, -infinity}) {
          std::vector<float> x(static_cast<size_t>(n), 0.25f);
          x[static_cast<size_t>(i)] = bad;
          std::vector<uint8_t> codes(x.size());
          std::vector<uint8_t> mask(bytes(n));
          CHECK_FALSE(quantize_f32_u8(n, x.data(), {}, codes.data(), mask.data()));
          const std::vector<float> twos(x.size(), 2.0f);
          const QuantizeF32 overflows{.factor = std::numeric_limits<float>::max()};
          CHECK_FALSE(quantize_f32_u8(n, twos.data(), overflows, codes.data(), mask.data()));
          CHECK_FALSE(quantize_channels_f32_u8(
              n, 1, n, x.data(), std::vector<QuantizeF32>(1).data(), codes.data(), nullptr));
        }
      }
    }
  });
}

TEST_CASE("quantization along channels uses each channel's parameters", "[kernels][integer]") {
  Random random(12);
  for (const int64_t inner : {1, 3, 8, 9, 17, 64}) {
    for (const int64_t channels : {1, 3, 11}) {
      const int64_t n = 2 * channels * inner;
      std::vector<QuantizeF32> q;
      for (int64_t c = 0; c < channels; ++c)
        q.push_back({random.uniform(0.01f, 0.1f), 0, -127, 127, 128, random.uniform(-2.0f, 2.0f)});
      const std::vector<float> x = random_floats(n, 8.0f, random);
      for_each_isa([&] {
        CAPTURE(inner, channels);
        std::vector<uint8_t> codes(x.size());
        std::vector<uint8_t> mask(bytes(n), 0xff);
        CHECK(quantize_channels_f32_u8(
            n, channels, inner, x.data(), q.data(), codes.data(), mask.data()));
        bool equal = true;
        for (size_t i = 0; i < x.size(); ++i) {
          const QuantizeF32& p = q[i / static_cast<size_t>(inner) % static_cast<size_t>(channels)];
          const float v = x[i] * p.factor;
          equal = equal && codes[i] == quantize(v, p.scale, 0, -127, 127) + 128 &&
                  bit(mask, i) == gradient_passes(v, p.scale, 0, -127, 127);
        }
        CHECK(equal);
      });
    }
  }
}

TEST_CASE("quantization gives the same codes and masks for any number of threads",
          "[kernels][integer]") {
  Random random(13);
  const int64_t channels = 30001;
  const std::vector<float> x = random_floats(channels * 9, 6.0f, random);
  const std::vector<QuantizeF32> q(static_cast<size_t>(channels), {0.04f, 0, -127, 127, 128});
  std::vector<uint8_t> codes(x.size());
  std::vector<uint8_t> mask(bytes(channels * 9));
  quantize_f32_u8(channels * 9, x.data(), q[0], codes.data(), mask.data());
  for_each_thread_count([&] {
    std::vector<uint8_t> other_codes(x.size());
    std::vector<uint8_t> other_mask(mask.size());
    CHECK(quantize_channels_f32_u8(
        channels * 9, channels, 9, x.data(), q.data(), other_codes.data(), other_mask.data()));
    CHECK(other_codes == codes);
    CHECK(other_mask == mask);
    CHECK(quantize_f32_u8(channels * 9, x.data(), q[0], other_codes.data(), other_mask.data()));
    CHECK(other_codes == codes);
    CHECK(other_mask == mask);
  });
}

TEST_CASE("dequantized codes are scale * (code - zero point)", "[kernels][integer]") {
  Random random(14);
  for (const int64_t n : kSizes) {
    const std::vector<uint8_t> codes = random_codes(n, random);
    for_each_isa([&] {
      std::vector<float> y(codes.size());
      dequantize_u8_f32(n, codes.data(), 0.037f, 101, y.data());
      bool equal = true;
      for (size_t i = 0; i < y.size(); ++i)
        equal = equal && y[i] == dequantize(codes[i], 0.037f, 101);
      CHECK(equal);
    });
  }
}
