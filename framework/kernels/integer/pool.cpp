#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/integer.hpp"
#include "framework/kernels/pool_shape.hpp"

namespace quantrain::kernels {
namespace {

// Images in one block, which takes about 10 microseconds.
int64_t grain(const PoolShape& s) {
  const int64_t window = std::min(s.kh, s.h) * std::min(s.kw, s.w);
  return std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(s.oh * s.ow * window * s.c, 1));
}

}  // namespace

void max_pool2d_u8(const Conv2dShape& shape, const uint8_t* x, uint8_t* y, uint16_t* position) {
  const PoolShape s = pool_shape(shape);
  const IntegerTable& kernels = integer_table();
  parallel_for(shape.n, grain(s), [&](int64_t begin, int64_t end) {
    kernels.max_pool2d_u8(s, begin, end, x, y, position);
  });
}

void sum_pool2d_u8_s32(const Conv2dShape& shape, const uint8_t* x, int32_t zero_x, int32_t* sums) {
  const PoolShape s = pool_shape(shape);
  const IntegerTable& kernels = integer_table();
  parallel_for(shape.n, grain(s), [&](int64_t begin, int64_t end) {
    kernels.sum_pool2d_u8_s32(s, begin, end, x, zero_x, sums);
  });
}

int64_t avg_pool2d_scratch(const Conv2dShape& shape) {
  const PoolShape s = pool_shape(shape);
  const int64_t blocks = (shape.n + grain(s) - 1) / grain(s);
  return std::min<int64_t>(blocks, threads()) * s.oh * s.ow * s.c * int64_t{sizeof(int32_t)};
}

void avg_pool2d_u8(const Conv2dShape& shape,
                   const uint8_t* x,
                   int32_t zero_x,
                   std::span<const MeanMultiplier> means,
                   const StoredOutput& output,
                   uint8_t* y) {
  const PoolShape s = pool_shape(shape);
  const IntegerTable& kernels = integer_table();
  const auto inside = [](int64_t first, int64_t size, int64_t extent) {
    return std::max<int64_t>(std::min(first + size, extent) - std::max<int64_t>(first, 0), 0);
  };
  parallel_for(shape.n, grain(s), [&](int64_t begin, int64_t end) {
    const int64_t image = s.oh * s.ow * s.c;
    Buffer<int32_t> sums(image);
    for (int64_t n = begin; n < end; ++n) {
      kernels.sum_pool2d_u8_s32(s, 0, 1, x + n * s.h * s.w * s.c, zero_x, sums.data());
      for (int64_t pixel = 0; pixel < s.oh * s.ow; ++pixel) {
        const int64_t count = inside(pixel / s.ow * s.stride_h - s.pad_h, s.kh, s.h) *
                              inside(pixel % s.ow * s.stride_w - s.pad_w, s.kw, s.w);
        const auto mean = std::lower_bound(
            means.begin(), means.end(), count, [](const MeanMultiplier& m, int64_t value) {
              return m.count < value;
            });
        const Multiplier multiplier = mean != means.end() ? mean->multiplier : Multiplier{};
        for (int64_t i = pixel * s.c; i < (pixel + 1) * s.c; ++i) {
          y[n * image + i] = static_cast<uint8_t>(
              requantize(sums[i], multiplier, output.zero_point, output.lo, output.hi));
        }
      }
    }
  });
}

}  // namespace quantrain::kernels
