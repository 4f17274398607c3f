#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain::kernels {
namespace {

// Calls each(output index, first input of the channel, inside(h0, h1, w0, w1)) for every output
// element.
template <class Each>
void pool(const Conv2dShape& s, const Each& each) {
  const int64_t oh = s.oh();
  const int64_t ow = s.ow();
  parallel_for(s.n * oh, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t top = row % oh * s.stride_h - s.pad_h;
      const int64_t h0 = std::max<int64_t>(top, 0);
      const int64_t h1 = std::min(top + s.kh, s.h);
      for (int64_t column = 0; column < ow; ++column) {
        const int64_t left = column * s.stride_w - s.pad_w;
        const int64_t w0 = std::max<int64_t>(left, 0);
        const int64_t w1 = std::min(left + s.kw, s.w);
        for (int64_t c = 0; c < s.c; ++c) {
          each((row * ow + column) * s.c + c, row / oh * s.h * s.w * s.c + c, h0, h1, w0, w1);
        }
      }
    }
  });
}

}  // namespace

void max_pool2d_u8(const Conv2dShape& s, const uint8_t* x, uint8_t* y) {
  pool(s, [&](int64_t at, int64_t from, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
    uint8_t largest = 0;
    for (int64_t h = h0; h < h1; ++h) {
      for (int64_t w = w0; w < w1; ++w) largest = std::max(largest, x[from + (h * s.w + w) * s.c]);
    }
    y[at] = largest;
  });
}

void sum_pool2d_u8_s32(const Conv2dShape& s, const uint8_t* x, int32_t zero_x, int32_t* sums) {
  pool(s, [&](int64_t at, int64_t from, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
    int32_t sum = 0;
    for (int64_t h = h0; h < h1; ++h) {
      for (int64_t w = w0; w < w1; ++w) sum += x[from + (h * s.w + w) * s.c] - zero_x;
    }
    sums[at] = sum;
  });
}

void avg_pool2d_u8(const Conv2dShape& s,
                   const uint8_t* x,
                   int32_t zero_x,
                   const Multiplier* multipliers,
                   int32_t zero_y,
                   int32_t lo,
                   int32_t hi,
                   uint8_t* y) {
  pool(s, [&](int64_t at, int64_t from, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
    int32_t sum = 0;
    for (int64_t h = h0; h < h1; ++h) {
      for (int64_t w = w0; w < w1; ++w) sum += x[from + (h * s.w + w) * s.c] - zero_x;
    }
    const int64_t count = std::max<int64_t>(h1 - h0, 0) * std::max<int64_t>(w1 - w0, 0);
    const Multiplier multiplier = count > 0 ? multipliers[count - 1] : Multiplier{};
    y[at] = static_cast<uint8_t>(requantize(sum, multiplier, zero_y, lo, hi));
  });
}

}  // namespace quantrain::kernels
