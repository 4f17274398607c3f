#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Depthwise convolutions with lanes along the channels; weights [kh, kw, c].
namespace quantrain::kernels::simd {

/// The taps [first, end) that lie inside an axis of `size` elements, for a window that begins at
/// `start`.
struct TapsInside {
  int64_t first, end;
};
inline QUANTRAIN_INLINE TapsInside taps_inside(int64_t start,
                                               int64_t kernel,
                                               int64_t dilation,
                                               int64_t size) {
  // Loops cost less than divisions, because few windows lie at the border.
  TapsInside taps{0, kernel};
  while (taps.first < kernel && start + taps.first * dilation < 0) ++taps.first;
  while (taps.end > taps.first && start + (taps.end - 1) * dilation >= size) --taps.end;
  return taps;
}

template <class Arch>
void depthwise_f32(
    const DepthwiseF32& p, int64_t begin, int64_t end, const float* x, const float* w, float* y) {
  using L = Lanes<Arch>;
  const PoolShape& s = p.pool;
  const L lo(p.lo);
  const L hi(p.hi);
  const int64_t tap_step = s.dilation_w * s.c;
  for (int64_t line = begin; line < end; ++line) {
    const int64_t top = line % s.oh * s.stride_h - s.pad_h;
    const TapsInside rows = taps_inside(top, s.kh, s.dilation_h, s.h);
    const float* const image = x + line / s.oh * s.h * s.w * s.c;
    for (int64_t j = 0; j < s.ow; ++j) {
      const int64_t left = j * s.stride_w - s.pad_w;
      const TapsInside taps = taps_inside(left, s.kw, s.dilation_w, s.w);
      float* const to = y + (line * s.ow + j) * s.c;
      for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
        L total = p.accumulate ? at.load(to + c) : L(0.0f);
        for (int64_t u = rows.first; u < rows.end; ++u) {
          const int64_t row = (top + u * s.dilation_h) * s.w;
          int64_t from = (row + left + taps.first * s.dilation_w) * s.c + c;
          const float* tap = w + (u * s.kw + taps.first) * s.c + c;
          for (int64_t v = taps.first; v < taps.end; ++v, from += tap_step, tap += s.c)
            total = fma(at.load(image + from), at.load(tap), total);
        }
        if (p.bias != nullptr) total = total + at.load(p.bias + c);
        at.store(to + c, min(hi, max(lo, total)));
      });
    }
  }
}

template <class Arch>
void depthwise_backward_data_f32(const DepthwiseF32& p,
                                 int64_t begin,
                                 int64_t end,
                                 const float* grad_y,
                                 const float* w,
                                 float* grad_x) {
  using L = Lanes<Arch>;
  const PoolShape& s = p.pool;
  for (int64_t line = begin; line < end; ++line) {
    for (int64_t j = 0; j < s.w; ++j) {
      for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
        L total(0.0f);
        for (int64_t u = 0; u < s.kh; ++u) {
          const int64_t h = line % s.h + s.pad_h - u * s.dilation_h;
          if (h < 0 || h % s.stride_h != 0 || h / s.stride_h >= s.oh) continue;
          const float* const row = grad_y + (line / s.h * s.oh + h / s.stride_h) * s.ow * s.c + c;
          for (int64_t v = 0; v < s.kw; ++v) {
            const int64_t k = j + s.pad_w - v * s.dilation_w;
            if (k < 0 || k % s.stride_w != 0 || k / s.stride_w >= s.ow) continue;
            total = fma(
                at.load(row + k / s.stride_w * s.c), at.load(w + (u * s.kw + v) * s.c + c), total);
          }
        }
        at.store(grad_x + (line * s.w + j) * s.c + c, total);
      });
    }
  }
}

template <class Arch>
void depthwise_backward_weights_f32(const DepthwiseF32& p,
                                    int64_t begin,
                                    int64_t end,
                                    const float* x,
                                    const float* grad_y,
                                    float* grad_w) {
  using L = Lanes<Arch>;
  const PoolShape& s = p.pool;
  for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) {
    // Pixels j whose window has the tap inside the image, at column j * stride_w - before.
    const int64_t before = s.pad_w - tap % s.kw * s.dilation_w;
    const int64_t j_begin = before > 0 ? (before + s.stride_w - 1) / s.stride_w : 0;
    const int64_t inside = s.w - 1 + before < 0 ? 0 : (s.w - 1 + before) / s.stride_w + 1;
    const int64_t j_end = inside < s.ow ? inside : s.ow;
    for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
      L total(0.0f);
      for (int64_t line = begin; line < end; ++line) {
        const int64_t h = line % s.oh * s.stride_h - s.pad_h + tap / s.kw * s.dilation_h;
        if (h < 0 || h >= s.h) continue;
        const float* const row = x + (line / s.oh * s.h + h) * s.w * s.c + c;
        // Each line is one chain or several.
        for (int64_t j = j_begin; j < j_end;) {
          const int64_t stop = j_end - j < kLongestChain ? j_end : j + kLongestChain;
          L chain(0.0f);
          for (; j < stop; ++j) {
            chain = fma(at.load(row + (j * s.stride_w - before) * s.c),
                        at.load(grad_y + (line * s.ow + j) * s.c + c),
                        chain);
          }
          total = total + chain;
        }
      }
      at.store(grad_w + tap * s.c + c, total);
    });
  }
}

}  // namespace quantrain::kernels::simd
