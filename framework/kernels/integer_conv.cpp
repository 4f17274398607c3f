#include "framework/core/parallel.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain::kernels {
namespace {

template <class Store>
void conv2d(const Conv2dShape& s,
            const uint8_t* x,
            int32_t zero_x,
            const PackedWeightsS8& w,
            const int32_t* bias,
            const Store& store) {
  const int64_t oh = s.oh();
  const int64_t ow = s.ow();
  const int64_t gc = s.group_c();
  parallel_for(s.n * oh, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / oh;
      for (int64_t column = 0; column < ow; ++column) {
        for (int64_t o = 0; o < s.o; ++o) {
          int32_t sum = bias != nullptr ? bias[o] : 0;
          for (int64_t i = 0; i < s.kh; ++i) {
            const int64_t h = row % oh * s.stride_h + i - s.pad_h;
            if (h < 0 || h >= s.h) continue;
            for (int64_t j = 0; j < s.kw; ++j) {
              const int64_t v = column * s.stride_w + j - s.pad_w;
              if (v < 0 || v >= s.w) continue;
              const uint8_t* const pixel =
                  x + ((n * s.h + h) * s.w + v) * s.c + o / s.group_o() * gc;
              const int8_t* const tap = w.data() + ((o * s.kh + i) * s.kw + j) * gc;
              for (int64_t c = 0; c < gc; ++c) sum += tap[c] * (pixel[c] - zero_x);
            }
          }
          store((row * ow + column) * s.o + o, o, sum);
        }
      }
    }
  });
}

}  // namespace

void conv2d_u8s8_s32(const Conv2dShape& shape,
                     const uint8_t* x,
                     int32_t zero_x,
                     const PackedWeightsS8& w,
                     const int32_t* bias,
                     int32_t* acc) {
  conv2d(shape, x, zero_x, w, bias, [&](int64_t at, int64_t, int32_t sum) { acc[at] = sum; });
}

void conv2d_u8s8_u8(const Conv2dShape& shape,
                    const uint8_t* x,
                    int32_t zero_x,
                    const PackedWeightsS8& w,
                    const int32_t* bias,
                    const RequantizeU8& r,
                    uint8_t* y) {
  conv2d(shape, x, zero_x, w, bias, [&](int64_t at, int64_t o, int32_t sum) {
    y[at] = static_cast<uint8_t>(requantize(sum, {r.m0[o], r.shift[o]}, r.zero_point, r.lo, r.hi));
  });
}

}  // namespace quantrain::kernels
