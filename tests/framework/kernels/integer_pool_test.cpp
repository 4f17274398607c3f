#include <algorithm>
#include <set>

#include "tests/framework/kernels/integer_testing.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

struct Element {
  uint8_t code;
  uint16_t position;  ///< in the window
};

/// The elements of each window that lie inside the image, as [output element][element].
std::vector<std::vector<Element>> windows(const Conv2dShape& s, const std::vector<uint8_t>& x) {
  std::vector<std::vector<Element>> all;
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t row = 0; row < s.oh(); ++row) {
      for (int64_t column = 0; column < s.ow(); ++column) {
        for (int64_t c = 0; c < s.c; ++c) {
          std::vector<Element>& window = all.emplace_back();
          for (int64_t i = 0; i < s.kh * s.kw; ++i) {
            const int64_t h = row * s.stride_h - s.pad_h + i / s.kw;
            const int64_t w = column * s.stride_w - s.pad_w + i % s.kw;
            if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
            window.push_back({x[static_cast<size_t>(((n * s.h + h) * s.w + w) * s.c + c)],
                              static_cast<uint16_t>(i)});
          }
        }
      }
    }
  }
  return all;
}

Multiplier multiplier_of(size_t count) { return make_multiplier(0.9 / static_cast<double>(count)); }

Conv2dShape pool_shape(
    int64_t n, int64_t h, int64_t w, int64_t c, int64_t kernel, int64_t stride, int64_t pad) {
  return {.n = n,
          .h = h,
          .w = w,
          .c = c,
          .o = c,
          .kh = kernel,
          .kw = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad,
          .groups = c};
}

}  // namespace

TEST_CASE("pooling of codes is exact on every instruction set", "[kernels][integer]") {
  Random random(18);
  for (const int64_t c : {1, 3, 4, 8, 15, 16, 17, 32, 64, 81}) {
    for (const Conv2dShape& s : {pool_shape(2, 6, 7, c, 2, 2, 0),
                                 pool_shape(1, 5, 5, c, 3, 2, 1),
                                 pool_shape(3, 4, 4, c, 4, 4, 0),
                                 pool_shape(1, 17, 18, c, 16, 1, 0),  // positions fit in 8 bits
                                 pool_shape(1, 19, 18, c, 17, 1, 0),  // positions need more
                                 pool_shape(0, 4, 4, c, 2, 2, 0)}) {
      const std::vector<uint8_t> x = random_codes(s.x_elements(), random);
      const auto all = windows(s, x);
      const int32_t zero_x = static_cast<int32_t>(random.below(256));
      std::set<size_t> counts;
      for (const auto& window : all) counts.insert(window.size());
      std::vector<MeanMultiplier> means;
      for (const size_t count : counts) {
        means.push_back({static_cast<int64_t>(count), multiplier_of(count)});
      }
      for_each_isa([&] {
        CAPTURE(s.n, s.h, s.w, s.c, s.kh, s.pad_h);
        std::vector<uint8_t> largest(all.size());
        std::vector<uint8_t> largest_too(all.size());
        std::vector<uint16_t> position(all.size());
        std::vector<uint8_t> average(all.size());
        std::vector<int32_t> sums(all.size());
        max_pool2d_u8(s, x.data(), largest.data());
        max_pool2d_u8(s, x.data(), largest_too.data(), position.data());
        sum_pool2d_u8_s32(s, x.data(), zero_x, sums.data());
        avg_pool2d_u8(s, x.data(), zero_x, means, {30, 5, 240}, average.data());
        bool equal = true;
        for (size_t i = 0; i < all.size(); ++i) {
          int32_t sum = 0;
          Element best = all[i].front();
          for (const Element& element : all[i]) {
            sum += element.code - zero_x;
            if (element.code > best.code) best = element;
          }
          equal = equal && largest[i] == best.code && largest_too[i] == best.code &&
                  position[i] == best.position && sums[i] == sum &&
                  average[i] == requantize(sum, multiplier_of(all[i].size()), 30, 5, 240);
        }
        CHECK(equal);
      });
    }
  }
}

TEST_CASE("pooling of codes is the same for any number of threads", "[kernels][integer]") {
  Random random(19);
  const Conv2dShape s = pool_shape(40, 28, 28, 16, 2, 2, 0);
  const std::vector<uint8_t> x = random_codes(s.x_elements(), random);
  std::vector<uint8_t> first(static_cast<size_t>(s.y_elements()));
  max_pool2d_u8(s, x.data(), first.data());
  for_each_thread_count([&] {
    std::vector<uint8_t> y(first.size());
    max_pool2d_u8(s, x.data(), y.data());
    CHECK(y == first);
  });
}
