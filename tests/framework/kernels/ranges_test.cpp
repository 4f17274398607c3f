#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/kernels/float/ranges.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

TEST_CASE("smallest and largest elements are found, and NaN and infinity are reported",
          "[kernels][ranges]") {
  Random random(15);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 200000}) {
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
        for (const float extreme : {-infinity, infinity}) {
          x[static_cast<size_t>(i)] = extreme;
          min_max_f32(n, x.data(), &min, &max);
          CHECK(min == *std::min_element(x.begin(), x.end()));
          CHECK(max == *std::max_element(x.begin(), x.end()));
        }
        if (i + 1 < n) {  // a NaN after an infinity
          const float next = std::exchange(x[static_cast<size_t>(i + 1)], std::nanf(""));
          min_max_f32(n, x.data(), &min, &max);
          CHECK(std::isnan(min));
          CHECK(std::isnan(max));
          x[static_cast<size_t>(i + 1)] = next;
        }
        x[static_cast<size_t>(i)] = before;
      }
    });
  }
}

TEST_CASE("smallest and largest elements of each channel are found", "[kernels][ranges]") {
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

TEST_CASE("a mask keeps the elements whose bits are set", "[kernels][ranges]") {
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

TEST_CASE("column extremes and masks of positive accumulators are exact", "[kernels][ranges]") {
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
