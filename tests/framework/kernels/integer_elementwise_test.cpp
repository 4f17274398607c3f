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

uint8_t requantize_one(int32_t acc, int32_t m0, int32_t shift, int32_t zero_point) {
  const RequantizeU8 r{&m0, &shift, zero_point, 0, 255};
  uint8_t y = 0;
  requantize_s32_u8(1, 1, &acc, r, &y);
  return y;
}

}  // namespace

TEST_CASE("requantization rounds ties toward plus infinity", "[kernels][integer]") {
  for_each_isa([] {
    // m0 = 2^30 at shift 31 + s is a factor of 2^-(s + 1). Zero point 128 allows both signs.
    // The first value is 62.5 before rounding.
    CHECK(requantize_one(125, 1 << 30, 31, 128) == 128 + 63);
    // -62.5 before rounding. Rounding away from zero would give -63.
    CHECK(requantize_one(-125, 1 << 30, 31, 128) == 128 - 62);
    // -63.5 before rounding. Rounding to even or away from zero would give -64.
    CHECK(requantize_one(-127, 1 << 30, 31, 128) == 128 - 63);
    // -0.5 becomes 0, and 0.5 becomes 1.
    CHECK(requantize_one(-1, 1 << 30, 31, 128) == 128);
    CHECK(requantize_one(1, 1 << 30, 31, 128) == 129);
    // The same with shifts of 32 or more. The values before rounding are -62.5, 62.5 and -70.3125.
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

TEST_CASE("requantization and its mask follow (8) for any size, channel count and shift",
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
              rows, channels, acc.data(), q.view(), y.data(), {mask.data(), mask_lo, mask_hi});
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

// If all shifts are 33 to 54, kernels use only the upper halves of products.
TEST_CASE("requantization follows (8) around the limits of the usual shifts",
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

TEST_CASE("dequantizing accumulators computes the product in double and rounds it once",
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

/// A sum of random codes with the given multipliers and random zero points.
struct RandomSum {
  RandomSum(const std::vector<double>& multipliers, int64_t n, Random& random)
      : params{{}, make_add_multipliers(multipliers), {0, 0, 250}} {
    for (size_t k = 0; k < multipliers.size(); ++k) {
      codes.push_back(random_codes(n, random));
      params.zero_x.push_back(static_cast<int32_t>(random.below(256)));
    }
    params.y.zero_point = static_cast<int32_t>(random.below(256));
    params.y.lo = static_cast<int32_t>(random.below(30));
    for (const std::vector<uint8_t>& operand : codes) x.push_back(operand.data());
  }
  int32_t at(size_t i, int32_t lo, int32_t hi) const {
    std::vector<int32_t> minus_zero;
    for (size_t k = 0; k < codes.size(); ++k) minus_zero.push_back(codes[k][i] - params.zero_x[k]);
    return requantize_add(minus_zero, params.multipliers, params.y.zero_point, lo, hi);
  }

  std::vector<std::vector<uint8_t>> codes;
  std::vector<const uint8_t*> x;
  AddParams params;
};

TEST_CASE("addition of codes follows (11) for any number of operands", "[kernels][integer]") {
  Random random(10);
  const std::vector<std::vector<double>> all = {{0.5, 0.25},
                                                {0.999, 0.001},
                                                {1.0, 1.0},
                                                {0.3, 1.7},
                                                {1e-3, 3e-4},
                                                {40.0, 0.0},
                                                {0.0, 0.0},
                                                {1e-12, 1e-13},
                                                {3e6, 1.0},
                                                {0.7},
                                                {3e6},
                                                {0.5, 0.25, 0.125},
                                                {0.3, 1.7, 0.9},
                                                {1e-9, 2e-10, 3e-11},
                                                std::vector<double>(8, 0.11),
                                                {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.0},
                                                std::vector<double>(100, 0.03)};
  for (const std::vector<double>& multipliers : all) {
    for (const int64_t n : kSizes) {
      const RandomSum sum(multipliers, n, random);
      std::vector<uint8_t> expected;
      std::vector<uint8_t> expected_mask(bytes(n), 0);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        expected.push_back(static_cast<uint8_t>(sum.at(i, sum.params.y.lo, 250)));
        const int32_t wide = sum.at(i, 2, 241);
        if (wide != 2 && wide != 241) expected_mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      }
      for_each_isa([&] {
        CAPTURE(multipliers, n);
        std::vector<uint8_t> y(expected.size());
        std::vector<uint8_t> mask(expected_mask.size(), 0xff);
        add_u8(n, sum.x.data(), sum.params, y.data(), {mask.data(), 3, 240});
        CHECK(y == expected);
        CHECK(mask == expected_mask);
        std::vector<uint8_t> plain(y.size());
        add_u8(n, sum.x.data(), sum.params, plain.data());
        CHECK(plain == y);
      });
    }
  }
}

TEST_CASE("the largest sums of codes do not overflow at any shift", "[kernels][integer]") {
  constexpr int64_t kSize = 67;
  const std::vector<uint8_t> smallest(kSize, 0);
  const std::vector<uint8_t> largest(kSize, 255);
  enum class Sums { kPositive, kNegative, kCancelling };
  for (const size_t operands : {1u, 2u, 3u, 8u, 1000u}) {
    for (int32_t shift = 1; shift <= 62; ++shift) {
      // Each term is 255 * (2^31 - 1) or the negative of that.
      const std::vector<int32_t> m(operands, std::numeric_limits<int32_t>::max());
      for (const Sums sums : {Sums::kPositive, Sums::kNegative, Sums::kCancelling}) {
        std::vector<const uint8_t*> x;
        std::vector<int32_t> zeros;
        std::vector<int32_t> minus_zero;
        for (size_t i = 0; i < operands; ++i) {
          const bool negative =
              sums == Sums::kNegative || (sums == Sums::kCancelling && i % 2 == 1);
          x.push_back(negative ? smallest.data() : largest.data());
          zeros.push_back(negative ? 255 : 0);
          minus_zero.push_back(negative ? -255 : 255);
        }
        const AddParams params{zeros, {m, shift}, {10, 1, 254}};
        const int32_t expected = requantize_add(minus_zero, params.multipliers, 10, 1, 254);
        for_each_isa([&] {
          CAPTURE(operands, shift, sums);
          std::vector<uint8_t> y(kSize);
          add_u8(kSize, x.data(), params, y.data());
          CHECK(std::count(y.begin(), y.end(), expected) == kSize);
        });
      }
    }
  }
}

TEST_CASE("addition of codes and its mask are the same for any number of threads",
          "[kernels][integer]") {
  Random random(20);
  for (const std::vector<double>& multipliers :
       std::vector<std::vector<double>>{{1.3, 0.7}, {1.3, 0.7, 0.1}}) {
    for (const int64_t n : {2047, 2049, 40001}) {
      const RandomSum sum(multipliers, n, random);
      std::vector<uint8_t> codes;
      std::vector<uint8_t> expected(bytes(n), 0);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        const int32_t wide = sum.at(i, 2, 241);
        codes.push_back(static_cast<uint8_t>(sum.at(i, sum.params.y.lo, 250)));
        if (wide > 2 && wide < 241) expected[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      }
      for_each_isa([&] {
        for_each_thread_count([&] {
          std::vector<uint8_t> y(codes.size());
          std::vector<uint8_t> mask(bytes(n), 0xff);
          add_u8(n, sum.x.data(), sum.params, y.data(), {mask.data(), 3, 240});
          CHECK(y == codes);
          CHECK(mask == expected);
          // The result may overwrite an operand.
          std::vector<uint8_t> over = sum.codes.back();
          std::vector<const uint8_t*> x = sum.x;
          x.back() = over.data();
          mask.assign(mask.size(), 0xff);
          add_u8(n, x.data(), sum.params, over.data(), {mask.data(), 3, 240});
          CHECK(over == codes);
          CHECK(mask == expected);
        });
      });
    }
  }
}

TEST_CASE("multiplication of codes and its mask follow (25) for any size and shift",
          "[kernels][integer]") {
  Random random(31);
  // Shifts around 17, 32 and 62, and a multiplier of 0.
  const std::vector<Multiplier> multipliers = {{0, 1},
                                               {2147483647, 1},
                                               {2147483647, 17},
                                               {2147483647, 18},
                                               {1 << 30, 18},
                                               {1288490188, 31},
                                               {1288490188, 32},
                                               {1288490188, 33},
                                               {1717986918, 38},
                                               {1130315153, 42},
                                               {2147483647, 62},
                                               {1 << 30, 62}};
  for (const Multiplier& m : multipliers) {
    for (const int64_t rows : {1, 3, 50}) {
      for (const int64_t channels : {0, 1, 7, 16, 17, 67, 2050}) {
        const int64_t samples = 3;
        const int64_t n = samples * rows * channels;
        std::vector<uint8_t> a = random_codes(n, random);
        std::vector<uint8_t> b = random_codes(samples * channels, random);
        const auto zero_a = static_cast<int32_t>(random.below(2) * 255);
        const auto zero_b = static_cast<int32_t>(random.below(256));
        const auto zero_y = static_cast<int32_t>(random.below(256));
        // The largest products, of both signs.
        for (size_t i = 0; i < a.size(); i += 5) a[i] = static_cast<uint8_t>(255 - zero_a);
        for (size_t i = 0; i < b.size(); i += 2) b[i] = i % 4 == 0 ? 0 : 255;
        for_each_isa([&] {
          CAPTURE(m.m0, m.shift, rows, channels);
          std::vector<uint8_t> y(a.size());
          std::vector<uint8_t> mask(bytes(n), 0xff);
          const MulParams params{zero_a, zero_b, m, {zero_y, 9, 250}};
          mul_u8(
              samples, rows, channels, a.data(), b.data(), params, y.data(), {mask.data(), 3, 240});
          bool equal = true;
          for (size_t i = 0; i < y.size(); ++i) {
            const auto c = static_cast<size_t>(channels);
            const size_t sample = i / (static_cast<size_t>(rows) * c);
            const int32_t product = (a[i] - zero_a) * (b[sample * c + i % c] - zero_b);
            const int64_t code = requantize_unclamped(product, m, zero_y);
            equal = equal && y[i] == std::clamp<int64_t>(code, 9, 250) &&
                    bit(mask, i) == (code >= 3 && code <= 240);
          }
          CHECK(equal);
          std::vector<uint8_t> plain(a.size());
          mul_u8(samples, rows, channels, a.data(), b.data(), params, plain.data());
          CHECK(plain == y);
        });
      }
    }
  }
}

TEST_CASE("multiplication of codes and its mask are the same for any number of threads",
          "[kernels][integer]") {
  Random random(32);
  const Multiplier m = make_multiplier(0.004);
  for (const int64_t rows : {1, 801}) {
    for (const int64_t channels : {51, 2051}) {
      const int64_t n = 2 * rows * channels;
      const std::vector<uint8_t> a = random_codes(n, random);
      const std::vector<uint8_t> b = random_codes(2 * channels, random);
      std::vector<uint8_t> codes;
      std::vector<uint8_t> expected(bytes(n), 0);
      for (size_t i = 0; i < a.size(); ++i) {
        const auto c = static_cast<size_t>(channels);
        const uint8_t factor = b[i / (static_cast<size_t>(rows) * c) * c + i % c];
        const int32_t code = requantize((a[i] - 100) * (factor - 120), m, 90, -1000, 1000);
        codes.push_back(static_cast<uint8_t>(std::clamp(code, 20, 200)));
        if (code >= 3 && code <= 240) expected[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      }
      for_each_isa([&] {
        for_each_thread_count([&] {
          CAPTURE(rows, channels);
          std::vector<uint8_t> y(a.size());
          std::vector<uint8_t> mask(bytes(n), 0xff);
          const MulParams params{100, 120, m, {90, 20, 200}};
          mul_u8(2, rows, channels, a.data(), b.data(), params, y.data(), {mask.data(), 3, 240});
          CHECK(y == codes);
          CHECK(mask == expected);
        });
      });
    }
  }
}

TEST_CASE("lookups give the codes of the table, also in place", "[kernels][integer]") {
  Random random(21);
  std::vector<uint8_t> table(256);
  const Multiplier m = make_multiplier(0.73);
  for (size_t i = 0; i < 256; ++i)
    table[i] = static_cast<uint8_t>(requantize(static_cast<int32_t>(i) - 17, m, 40, 40, 200));
  for (const bool any : {false, true}) {
    if (any) table = random_codes(256, random);
    for (const int64_t n : {0, 1, 15, 17, 63, 65, 256, 40001}) {
      std::vector<uint8_t> x = random_codes(n, random);
      for (size_t i = 0; i < std::min<size_t>(x.size(), 256); ++i) x[i] = static_cast<uint8_t>(i);
      std::vector<uint8_t> expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) expected[i] = table[x[i]];
      for_each_isa([&] {
        for_each_thread_count([&] {
          CAPTURE(any, n);
          std::vector<uint8_t> y(x.size());
          lookup_u8(n, x.data(), table.data(), y.data());
          CHECK(y == expected);
          y = x;
          lookup_u8(n, y.data(), table.data(), y.data());
          CHECK(y == expected);
        });
      });
    }
  }
}

TEST_CASE("each channel has its own table", "[kernels][integer]") {
  Random random(23);
  for (const int64_t channels : {1, 2, 5, 16, 67}) {
    const std::vector<uint8_t> tables = random_codes(channels * 256, random);
    for (const int64_t rows : {0, 1, 3, 4000}) {
      const std::vector<uint8_t> x = random_codes(rows * channels, random);
      std::vector<uint8_t> expected;
      for (size_t i = 0; i < x.size(); ++i)
        expected.push_back(tables[i % static_cast<size_t>(channels) * 256 + x[i]]);
      for_each_isa([&] {
        for_each_thread_count([&] {
          CAPTURE(channels, rows);
          std::vector<uint8_t> y = x;
          lookup_channels_u8(rows, channels, y.data(), tables.data(), y.data());
          CHECK(y == expected);
        });
      });
    }
  }
}

TEST_CASE("a lookup of rows writes nothing between the rows of its result", "[kernels][integer]") {
  Random random(22);
  const std::vector<uint8_t> table = random_codes(256, random);
  const std::vector<uint8_t> x = random_codes(256 * 64, random);
  for (const int64_t length : {1, 16, 64, 256}) {
    const int64_t rows = static_cast<int64_t>(x.size()) / length;
    for_each_isa([&] {
      for_each_thread_count([&] {
        CAPTURE(length);
        std::vector<uint8_t> apart(static_cast<size_t>(rows * (length + 3)), 1);
        lookup_rows_u8(rows, length, x.data(), table.data(), apart.data() + 2, length + 3);
        bool equal = true;
        for (int64_t i = 0; i < static_cast<int64_t>(apart.size()); ++i) {
          const int64_t column = i % (length + 3) - 2;
          const bool is_code = column >= 0 && column < length;
          const int64_t from = i / (length + 3) * length + column;
          const uint8_t expected = is_code ? table[x[static_cast<size_t>(from)]] : uint8_t{1};
          equal = equal && apart[static_cast<size_t>(i)] == expected;
        }
        CHECK(equal);
      });
    });
  }
}
