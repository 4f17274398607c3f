#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/arithmetic/quantize.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

const int64_t kSizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257};

bool bit(const std::vector<uint8_t>& mask, size_t i) { return (mask[i / 8] >> i % 8 & 1) != 0; }

size_t bytes(int64_t n) { return static_cast<size_t>((n + 7) / 8); }

std::vector<float> random_floats(int64_t n, float range, Random& random) {
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(random.uniform(-range, range));
  return x;
}

uint8_t requantize_one(int32_t acc, int32_t m0, int32_t shift, int32_t zero_point) {
  const RequantizeU8 r{&m0, &shift, zero_point, 0, 255};
  uint8_t y = 0;
  requantize_s32_u8(1, 1, &acc, r, &y);
  return y;
}

}  // namespace

TEST_CASE("requantization rounds ties toward plus infinity", "[kernels][integer]") {
  for_each_isa([] {
    // m0 = 2^30 at shift 31 + s is a factor of 2^-(s + 1); zero point 128 shows both signs.
    // The value before rounding is 62.5.
    CHECK(requantize_one(125, 1 << 30, 31, 128) == 128 + 63);
    // The value before rounding is -62.5; away from zero or to even would give -63 or -62 for other
    // neighbours.
    CHECK(requantize_one(-125, 1 << 30, 31, 128) == 128 - 62);
    // -63.5: to even would give -64.
    CHECK(requantize_one(-127, 1 << 30, 31, 128) == 128 - 63);
    // -0.5 becomes 0, and 0.5 becomes 1.
    CHECK(requantize_one(-1, 1 << 30, 31, 128) == 128);
    CHECK(requantize_one(1, 1 << 30, 31, 128) == 129);
    // The same with all shifts of 32 or more: the values before rounding are -62.5, 62.5 and -562.5
    // / 8 = -70.3125.
    CHECK(requantize_one(-250, 1 << 30, 32, 128) == 128 - 62);
    CHECK(requantize_one(250, 1 << 30, 32, 128) == 128 + 63);
    CHECK(requantize_one(-1125, 1 << 30, 34, 128) == 128 - 70);
  });
}

TEST_CASE("requantization saturates only after rounding in 64 bits", "[kernels][integer]") {
  const int32_t low = std::numeric_limits<int32_t>::min();
  const int32_t high = std::numeric_limits<int32_t>::max();
  for_each_isa([&] {
    CHECK(requantize_one(high, high, 1, 3) == 255);
    CHECK(requantize_one(low, high, 1, 3) == 0);
    CHECK(requantize_one(high, high, 31, 0) == 255);
    CHECK(requantize_one(low, high, 62, 200) == 199);
    CHECK(requantize_one(high, high, 62, 200) == 201);
    CHECK(requantize_one(high, 0, 62, 9) == 9);
    CHECK(requantize_one(low, 0, 1, 9) == 9);
  });
}

TEST_CASE("requantization and its mask are those of the rule at any size, channel count and shift",
          "[kernels][integer]") {
  Random random(8);
  for (const int64_t channels : {1, 2, 3, 10, 16, 17, 64, 100}) {
    for (const int64_t rows : {0, 1, 2, 5, 19}) {
      const int64_t n = rows * channels;
      for (const bool any : {false, true}) {
        const Multipliers q(channels, any, random);
        std::vector<int32_t> acc;
        for (int64_t i = 0; i < n; ++i)
          acc.push_back(static_cast<int32_t>(random.bits()) >> random.below(31));
        const int32_t mask_lo = static_cast<int32_t>(random.below(60));
        const int32_t mask_hi = static_cast<int32_t>(100 + random.below(156));
        for_each_isa([&] {
          CAPTURE(rows, channels, any);
          std::vector<uint8_t> y(static_cast<size_t>(n));
          std::vector<uint8_t> mask(bytes(n), 0xaa);
          requantize_s32_u8(
              rows, channels, acc.data(), q.view(), y.data(), mask.data(), mask_lo, mask_hi);
          bool equal = true;
          for (size_t i = 0; i < y.size(); ++i) {
            const size_t c = i % static_cast<size_t>(channels);
            const int64_t code =
                rounding_shift(int64_t{acc[i]} * q.m0[c], q.shift[c]) + q.zero_point;
            equal = equal && y[i] == q(acc[i], static_cast<int64_t>(c)) &&
                    bit(mask, i) == (code >= mask_lo && code <= mask_hi);
          }
          CHECK(equal);
          std::vector<uint8_t> without_mask(y.size());
          requantize_s32_u8(rows, channels, acc.data(), q.view(), without_mask.data());
          CHECK(without_mask == y);
        });
      }
    }
  }
}

// Kernels take the upper halves of products alone where all shifts are 33 to 54.
TEST_CASE("requantization is that of the rule at the ends of the usual shifts",
          "[kernels][integer]") {
  Random random(14);
  std::vector<int32_t> acc{std::numeric_limits<int32_t>::min(),
                           std::numeric_limits<int32_t>::max()};
  while (acc.size() < 100) acc.push_back(static_cast<int32_t>(random.bits()) >> random.below(31));
  for (const int32_t shift : {32, 33, 34, 53, 54, 55}) {
    for (const int32_t m0 : {1 << 30, (1 << 30) + 12345, std::numeric_limits<int32_t>::max()}) {
      for (const int32_t zero_point : {0, 77, 255}) {
        const RequantizeU8 r{&m0, &shift, zero_point, 3, 251};
        for_each_isa([&] {
          CAPTURE(shift, m0, zero_point);
          std::vector<uint8_t> y(acc.size());
          requantize_s32_u8(static_cast<int64_t>(acc.size()), 1, acc.data(), r, y.data());
          bool equal = true;
          for (size_t i = 0; i < y.size(); ++i)
            equal = equal && y[i] == requantize(acc[i], {m0, shift}, zero_point, 3, 251);
          CHECK(equal);
        });
      }
    }
  }
}

TEST_CASE("dequantized accumulators are the product in double, rounded once",
          "[kernels][integer]") {
  Random random(9);
  const std::vector<int32_t> acc{
      std::numeric_limits<int32_t>::max(), -16777217, 3, 0, 16777219, -1};
  const double scale[] = {0.1, 3.3e-7, 1.0 / 3.0};
  for_each_isa([&] {
    std::vector<float> y(6);
    dequantize_s32_f32(2, 3, acc.data(), scale, y.data());
    for (size_t i = 0; i < 6; ++i) CHECK(y[i] == static_cast<float>(scale[i % 3] * acc[i]));
  });
}

TEST_CASE("extremes and positive masks of accumulators are exact", "[kernels][integer]") {
  Random random(30);
  for (const int64_t channels : {1, 3, 16, 17, 64, 100}) {
    for (const int64_t rows : {1, 2, 5, 1500}) {
      const auto n = static_cast<size_t>(rows * channels);
      std::vector<int32_t> acc;
      for (size_t i = 0; i < n; ++i)
        acc.push_back(static_cast<int32_t>(random.bits()) >> random.below(31));
      acc[0] = std::numeric_limits<int32_t>::min();
      acc[n - 1] = std::numeric_limits<int32_t>::max();
      std::vector<int32_t> hi;
      for (int64_t c = 0; c < channels; ++c)
        hi.push_back(static_cast<int32_t>(random.bits() >> 33) >> random.below(31));
      hi[0] = acc[n / 2 / hi.size() * hi.size()] > 0 ? acc[n / 2 / hi.size() * hi.size()] : 0;
      for_each_isa([&] {
        CAPTURE(rows, channels);
        std::vector<int32_t> min(hi.size());
        std::vector<int32_t> max(hi.size());
        column_extremes_s32(rows, channels, acc.data(), min.data(), max.data());
        std::vector<uint8_t> positive(bytes(rows * channels), 0xaa);
        std::vector<uint8_t> below(positive.size(), 0xaa);
        positive_mask_s32(rows, channels, acc.data(), nullptr, positive.data());
        positive_mask_s32(rows, channels, acc.data(), hi.data(), below.data());
        std::vector<int32_t> least(hi.size(), std::numeric_limits<int32_t>::max());
        std::vector<int32_t> most(hi.size(), std::numeric_limits<int32_t>::min());
        bool equal = true;
        for (size_t i = 0; i < n; ++i) {
          const size_t c = i % hi.size();
          least[c] = std::min(least[c], acc[i]);
          most[c] = std::max(most[c], acc[i]);
          equal = equal && bit(positive, i) == (acc[i] > 0) &&
                  bit(below, i) == (acc[i] > 0 && acc[i] <= hi[c]);
        }
        CHECK(equal);
        CHECK(min == least);
        CHECK(max == most);
      });
    }
  }
}

TEST_CASE("addition of codes is that of the rule", "[kernels][integer]") {
  Random random(10);
  const std::pair<double, double> factors[] = {{0.5, 0.25},
                                               {0.999, 0.001},
                                               {1.0, 1.0},
                                               {0.3, 1.7},
                                               {1e-3, 3e-4},
                                               {40.0, 0.0},
                                               {0.0, 0.0},
                                               {1e-12, 1e-13},
                                               {3e6, 1.0}};
  for (const auto& factor : factors) {
    const AddMultipliers m = make_add_multipliers(factor.first, factor.second);
    for (const int64_t n : kSizes) {
      const std::vector<uint8_t> a = random_codes(n, random);
      const std::vector<uint8_t> b = random_codes(n, random);
      const int32_t zero_a = static_cast<int32_t>(random.below(256));
      const int32_t zero_b = static_cast<int32_t>(random.below(256));
      const int32_t zero_y = static_cast<int32_t>(random.below(256));
      const int32_t lo = static_cast<int32_t>(random.below(30));
      for_each_isa([&] {
        CAPTURE(factor.first, factor.second, n);
        std::vector<uint8_t> y(a.size());
        std::vector<uint8_t> mask((a.size() + 7) / 8, 0xff);
        add_u8(n,
               a.data(),
               zero_a,
               b.data(),
               zero_b,
               m,
               zero_y,
               lo,
               250,
               y.data(),
               mask.data(),
               3,
               240);
        bool equal = true;
        for (size_t i = 0; i < y.size(); ++i) {
          const auto sum = [&](int32_t low, int32_t high) {
            return requantize_add(a[i] - zero_a, b[i] - zero_b, m, zero_y, low, high);
          };
          const bool inside = sum(2, 241) != 2 && sum(2, 241) != 241;
          equal = equal && y[i] == sum(lo, 250) && (mask[i / 8] >> i % 8 & 1) == (inside ? 1 : 0);
        }
        CHECK(equal);
        std::vector<uint8_t> plain(a.size());
        add_u8(n, a.data(), zero_a, b.data(), zero_b, m, zero_y, lo, 250, plain.data());
        CHECK(plain == y);
      });
    }
  }
}

TEST_CASE("rescaled codes are those of the rule, in place too", "[kernels][integer]") {
  std::vector<uint8_t> x(256);
  for (size_t i = 0; i < 256; ++i) x[i] = static_cast<uint8_t>(i);
  const Multiplier m = make_multiplier(0.73);
  std::vector<uint8_t> y(256);
  rescale_u8(256, x.data(), 17, m, 40, 40, 200, y.data());
  for (int32_t i = 0; i < 256; ++i)
    CHECK(y[static_cast<size_t>(i)] == requantize(i - 17, m, 40, 40, 200));
  for (const int64_t length : {1, 16, 64, 256}) {
    std::vector<uint8_t> apart(static_cast<size_t>(256 / length * (length + 3)), 1);
    for_each_thread_count([&] {
      rescale_rows_u8(
          256 / length, length, x.data(), 17, m, 40, 40, 200, apart.data() + 2, length + 3);
    });
    bool equal = true;
    for (int64_t i = 0; i < static_cast<int64_t>(apart.size()); ++i) {
      const int64_t column = i % (length + 3) - 2;
      const bool is_code = column >= 0 && column < length;
      const int64_t from = i / (length + 3) * length + column;
      const uint8_t expected = is_code ? y[static_cast<size_t>(from)] : uint8_t{1};
      equal = equal && apart[static_cast<size_t>(i)] == expected;
    }
    CHECK(equal);
  }
  rescale_u8(256, x.data(), 17, m, 40, 40, 200, x.data());
  CHECK(x == y);
}

TEST_CASE("codes and gradient masks of floats are those of the rule", "[kernels][integer]") {
  Random random(11);
  const QuantizeF32 parameters[] = {{0.017f, 120, 0, 255, 0},
                                    {0.5f, 0, -128, 127, 128},
                                    {0.3f, 7, 0, 15, 0},
                                    {1e-3f, 0, -127, 127, 128},
                                    {1.0f, 0, -1, 1, 128},
                                    {0.02f, 0, -127, 127, 0},  // weights: signed bytes
                                    {0.7f, 0, -8, 7, 0}};
  for (const QuantizeF32& q : parameters) {
    for (const int64_t n : kSizes) {
      std::vector<float> x = random_floats(n, 4.0f, random);
      for (size_t i = 0; i < x.size(); ++i) {
        if (i % 5 == 0)
          x[i] = (static_cast<float>(random.below(300) - 150) + 0.5f) * q.scale;  // ties
        if (i % 31 == 7) x[i] = i % 2 == 0 ? 3e38f : -3e38f;
      }
      for_each_isa([&] {
        CAPTURE(n, q.scale);
        std::vector<uint8_t> codes(x.size());
        std::vector<uint8_t> mask(bytes(n), 0xaa);
        REQUIRE(quantize_f32_u8(n, x.data(), q, codes.data(), mask.data()));
        bool equal = true;
        for (size_t i = 0; i < x.size(); ++i) {
          equal =
              equal &&
              codes[i] == static_cast<uint8_t>(
                              quantize(x[i], q.scale, q.zero_point, q.qmin, q.qmax) + q.offset) &&
              bit(mask, i) == gradient_passes(x[i], q.scale, q.zero_point, q.qmin, q.qmax);
        }
        CHECK(equal);
        std::vector<uint8_t> without_mask(x.size());
        CHECK(quantize_f32_u8(n, x.data(), q, without_mask.data(), nullptr));
        CHECK(without_mask == codes);
      });
    }
  }
}

TEST_CASE("quantization divides and rounds ties to even", "[kernels][integer]") {
  // 0.1f * 35 / 0.2f: multiplying by the reciprocal would not give the tie 17.5 here.
  const float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 17.5f};
  for_each_isa([&] {
    uint8_t codes[6];
    CHECK(quantize_f32_u8(6, x, {1.0f, 100, 0, 255, 0}, codes, nullptr));
    CHECK(std::vector<int>(codes, codes + 6) == std::vector<int>{100, 102, 102, 100, 98, 118});
  });
}

TEST_CASE("quantization reports a value that is not finite wherever it is", "[kernels][integer]") {
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
        q.push_back({random.uniform(0.01f, 0.1f), 0, -127, 127, 128});
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
          equal = equal && codes[i] == quantize(x[i], p.scale, 0, -127, 127) + 128 &&
                  bit(mask, i) == gradient_passes(x[i], p.scale, 0, -127, 127);
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

TEST_CASE("dequantized codes are scale times code minus zero point", "[kernels][integer]") {
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

TEST_CASE("smallest and largest elements are found, NaN and infinity show", "[kernels][integer]") {
  Random random(15);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 2, 7, 16, 31, 32, 33, 64, 100, 200000}) {
    std::vector<float> x = random_floats(n, 5.0f, random);
    for_each_isa([&] {
      CAPTURE(n);
      float min = 0.0f;
      float max = 0.0f;
      min_max_f32(n, x.data(), &min, &max);
      CHECK(min == *std::min_element(x.begin(), x.end()));
      CHECK(max == *std::max_element(x.begin(), x.end()));
      for (const int64_t i : {int64_t{0}, n / 2, n - 1}) {
        const float before = std::exchange(x[static_cast<size_t>(i)], std::nanf(""));
        min_max_f32(n, x.data(), &min, &max);
        CHECK(std::isnan(min));
        CHECK(std::isnan(max));
        x[static_cast<size_t>(i)] = -infinity;
        min_max_f32(n, x.data(), &min, &max);
        CHECK(min == -infinity);
        x[static_cast<size_t>(i)] = before;
      }
    });
  }
}

TEST_CASE("smallest and largest elements of each channel are found", "[kernels][integer]") {
  Random random(16);
  const int64_t channels = 5;
  for (const int64_t inner : {1, 9, 33}) {
    std::vector<float> x = random_floats(3 * channels * inner, 5.0f, random);
    x[static_cast<size_t>(inner)] = std::nanf("");
    for_each_isa([&] {
      float min[5];
      float max[5];
      min_max_channels_f32(3 * channels * inner, channels, inner, x.data(), min, max);
      for (int64_t c = 0; c < channels; ++c) {
        float low = std::numeric_limits<float>::infinity(),
              high = -std::numeric_limits<float>::infinity();
        for (int64_t i = 0; i < 3 * channels * inner; ++i) {
          if (i / inner % channels != c) continue;
          low = std::min(low, x[static_cast<size_t>(i)]);
          high = std::max(high, x[static_cast<size_t>(i)]);
        }
        if (c == 1) {
          CHECK(std::isnan(min[c]));
          CHECK(std::isnan(max[c]));
        } else {
          CHECK(min[c] == low);
          CHECK(max[c] == high);
        }
      }
    });
  }
}

TEST_CASE("a mask keeps the elements whose bits are set", "[kernels][integer]") {
  Random random(17);
  for (const int64_t n : kSizes) {
    const std::vector<float> x = random_floats(n, 5.0f, random);
    const std::vector<uint8_t> mask = random_codes(static_cast<int64_t>(bytes(n)), random);
    for_each_isa([&] {
      std::vector<float> y = x;
      mask_f32(n, y.data(), mask.data(), y.data());
      bool equal = true;
      for (size_t i = 0; i < y.size(); ++i) equal = equal && y[i] == (bit(mask, i) ? x[i] : 0.0f);
      CHECK(equal);
    });
  }
}
