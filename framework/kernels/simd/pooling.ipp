#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"
#include "framework/kernels/simd/windows.hpp"

// Pooling with lanes along the channels.
namespace quantrain::kernels::simd {

template <class Arch>
void max_pool2d_f32(
    const PoolShape& s, int64_t begin, int64_t end, const float* x, float* y, uint16_t* position) {
  using L = Lanes<Arch>;
  for_windows<Arch>(
      s, begin, end, [&](int64_t pixel, const Window<Arch>& w, int64_t image) QUANTRAIN_INLINE {
        for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
          L best = at.load(x + image + (w.top * s.w + w.left) * s.c + c);
          L where(static_cast<float>(w.position(w.top, w.left)));
          for (int64_t u = w.top; u < w.bottom; ++u) {
            for (int64_t v = w.left; v < w.right; ++v) {
              const L other = at.load(x + image + (u * s.w + v) * s.c + c);
              const auto wins = (other > best) | (isnan(other) & (best == best));
              best = select(wins, other, best);
              where = select(wins, L(static_cast<float>(w.position(u, v))), where);
            }
          }
          at.store(y + pixel + c, best);
          if (position != nullptr) at.store(position + pixel + c, where);
        });
      });
}

template <class Arch>
inline QUANTRAIN_INLINE void clear_images(const PoolShape& s,
                                          int64_t begin,
                                          int64_t end,
                                          float* grad_x) {
  const int64_t image = s.h * s.w * s.c;
  __builtin_memset(
      grad_x + begin * image, 0, sizeof(float) * static_cast<size_t>((end - begin) * image));
}

/// Whether the windows tile the image, so that each element lies in exactly one of them.
inline QUANTRAIN_INLINE bool tiles_image(const PoolShape& s) {
  return s.pad_h == 0 && s.pad_w == 0 && s.stride_h == s.kh && s.stride_w == s.kw &&
         s.oh * s.kh == s.h && s.ow * s.kw == s.w;
}

// `position` stores where each window has its maximum. For each element of a window, the lanes
// (channels) with the maximum at this element get the gradient, and the other lanes get 0. This
// avoids a scatter.
template <class Arch>
void max_pool2d_backward_f32(const PoolShape& s,
                             int64_t begin,
                             int64_t end,
                             const float* grad_y,
                             const uint16_t* position,
                             float* grad_x) {
  using L = Lanes<Arch>;
  const bool once = tiles_image(s);
  if (!once) clear_images<Arch>(s, begin, end, grad_x);
  const L zero(0.0f);
  for_windows<Arch>(
      s, begin, end, [&](int64_t pixel, const Window<Arch>& w, int64_t image) QUANTRAIN_INLINE {
        for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
          const L grad = at.load(grad_y + pixel + c);
          const L where = at.load(position + pixel + c);
          for (int64_t u = w.top; u < w.bottom; ++u) {
            for (int64_t v = w.left; v < w.right; ++v) {
              float* const to = grad_x + image + (u * s.w + v) * s.c + c;
              const L here(static_cast<float>(w.position(u, v)));
              const L own = select(where == here, grad, zero);
              at.store(to, once ? own : at.load(to) + own);
            }
          }
        });
      });
}

template <class Arch>
void avg_pool2d_f32(
    const PoolShape& s, int64_t begin, int64_t end, int64_t divisor, const float* x, float* y) {
  using L = Lanes<Arch>;
  for_windows<Arch>(
      s, begin, end, [&](int64_t pixel, const Window<Arch>& w, int64_t image) QUANTRAIN_INLINE {
        const L count(static_cast<float>(divisor > 0 ? divisor : w.pixels()));
        const int64_t width = w.right - w.left;
        const bool one_chain = w.pixels() <= kLongestChain;
        for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
          const float* const first = x + image + (w.top * s.w + w.left) * s.c + c;
          const auto add_pixels = [&](L chain, int64_t row, int64_t v, int64_t stop)
                                      QUANTRAIN_INLINE {
                                        for (; v < stop; ++v)
                                          chain = chain + at.load(first + (row * s.w + v) * s.c);
                                        return chain;
                                      };
          L total(0.0f);
          if (one_chain) {
            for (int64_t row = 0; row < w.bottom - w.top; ++row)
              total = add_pixels(total, row, 0, width);
          } else {
            total =
                sum_of_parts<L>(w.bottom - w.top, 1, [&](int64_t row, int64_t) QUANTRAIN_INLINE {
                  return sum_of_parts<L>(
                      width, kLongestChain, [&](int64_t v, int64_t stop) QUANTRAIN_INLINE {
                        return add_pixels(L(0.0f), row, v, stop);
                      });
                });
          }
          at.store(y + pixel + c, total / count);
        });
      });
}

template <class Arch>
void avg_pool2d_backward_f32(const PoolShape& s,
                             int64_t begin,
                             int64_t end,
                             int64_t divisor,
                             const float* grad_y,
                             float* grad_x) {
  using L = Lanes<Arch>;
  clear_images<Arch>(s, begin, end, grad_x);
  for_windows<Arch>(
      s, begin, end, [&](int64_t pixel, const Window<Arch>& w, int64_t image) QUANTRAIN_INLINE {
        const L count(static_cast<float>(divisor > 0 ? divisor : w.pixels()));
        for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
          const L share = at.load(grad_y + pixel + c) / count;
          for (int64_t u = w.top; u < w.bottom; ++u) {
            for (int64_t v = w.left; v < w.right; ++v) {
              float* const to = grad_x + image + (u * s.w + v) * s.c + c;
              at.store(to, at.load(to) + share);
            }
          }
        });
      });
}

}  // namespace quantrain::kernels::simd
