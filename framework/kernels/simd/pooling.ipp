#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Pooling with lanes along the channels.
namespace quantrain::kernels::simd {

/// A window as far as it is inside the image: rows [top, bottom), columns [left, right).
struct Window {
  int64_t top, bottom, left, right;
  int64_t first_row, first_column;  ///< of the whole window, maybe outside

  QUANTRAIN_LANES int32_t position(int64_t row, int64_t column, int64_t kw) const {
    return static_cast<int32_t>((row - first_row) * kw + column - first_column);
  }
};

/// Calls f(first element of y's pixel, window, first element of x's image) for each pixel of the
/// images [begin, end).
template <class Arch, class F>
QUANTRAIN_LANES void for_windows(const PoolShape& s, int64_t begin, int64_t end, const F& f) {
  for (int64_t line = begin * s.oh; line < end * s.oh; ++line) {
    Window w;
    w.first_row = line % s.oh * s.stride_h - s.pad_h;
    w.top = w.first_row < 0 ? 0 : w.first_row;
    w.bottom = w.first_row + s.kh > s.h ? s.h : w.first_row + s.kh;
    const int64_t image = line / s.oh * s.h * s.w * s.c;
    for (int64_t j = 0; j < s.ow; ++j) {
      w.first_column = j * s.stride_w - s.pad_w;
      w.left = w.first_column < 0 ? 0 : w.first_column;
      w.right = w.first_column + s.kw > s.w ? s.w : w.first_column + s.kw;
      f((line * s.ow + j) * s.c, w, image);
    }
  }
}

template <class Arch>
void max_pool2d_f32(
    const PoolShape& s, int64_t begin, int64_t end, const float* x, float* y, uint16_t* position) {
  using L = Lanes<Arch>;
  for_windows<Arch>(
      s,
      begin,
      end,
      [&](int64_t pixel, const Window& w, int64_t image) __attribute__((always_inline)) {
        for_lanes<Arch>(
            s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
              L best = at.load(x + image + (w.top * s.w + w.left) * s.c + c);
              L where(static_cast<float>(w.position(w.top, w.left, s.kw)));
              for (int64_t u = w.top; u < w.bottom; ++u) {
                for (int64_t v = w.left; v < w.right; ++v) {
                  const L other = at.load(x + image + (u * s.w + v) * s.c + c);
                  const auto wins = (other > best) | (isnan(other) & (best == best));
                  best = select(wins, other, best);
                  where = select(wins, L(static_cast<float>(w.position(u, v, s.kw))), where);
                }
              }
              at.store(y + pixel + c, best);
              if (position != nullptr) at.store(position + pixel + c, where);
            });
      });
}

template <class Arch>
QUANTRAIN_LANES void clear_images(const PoolShape& s, int64_t begin, int64_t end, float* grad_x) {
  const int64_t image = s.h * s.w * s.c;
  __builtin_memset(
      grad_x + begin * image, 0, sizeof(float) * static_cast<size_t>((end - begin) * image));
}

/// Whether each element of the image lies in exactly one window.
QUANTRAIN_LANES bool tiles_image(const PoolShape& s) {
  return s.pad_h == 0 && s.pad_w == 0 && s.stride_h == s.kh && s.stride_w == s.kw &&
         s.oh * s.kh == s.h && s.ow * s.kw == s.w;
}

// Each element of a window takes the gradient where the position is its own: no scatter.
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
      s,
      begin,
      end,
      [&](int64_t pixel, const Window& w, int64_t image) __attribute__((always_inline)) {
        for_lanes<Arch>(
            s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
              const L grad = at.load(grad_y + pixel + c);
              const L where = at.load(position + pixel + c);
              for (int64_t u = w.top; u < w.bottom; ++u) {
                for (int64_t v = w.left; v < w.right; ++v) {
                  float* const to = grad_x + image + (u * s.w + v) * s.c + c;
                  const L here(static_cast<float>(w.position(u, v, s.kw)));
                  const L own = select(where == here, grad, zero);
                  at.store(to, once ? own : at.load(to) + own);
                }
              }
            });
      });
}

template <class Arch>
void avg_pool2d_f32(const PoolShape& s, int64_t begin, int64_t end, const float* x, float* y) {
  using L = Lanes<Arch>;
  for_windows<Arch>(
      s,
      begin,
      end,
      [&](int64_t pixel, const Window& w, int64_t image) __attribute__((always_inline)) {
        const L count(static_cast<float>((w.bottom - w.top) * (w.right - w.left)));
        for_lanes<Arch>(
            s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
              L total(0.0f);
              for (int64_t u = w.top; u < w.bottom; ++u) {
                for (int64_t v = w.left; v < w.right; ++v)
                  total = total + at.load(x + image + (u * s.w + v) * s.c + c);
              }
              at.store(y + pixel + c, total / count);
            });
      });
}

template <class Arch>
void avg_pool2d_backward_f32(
    const PoolShape& s, int64_t begin, int64_t end, const float* grad_y, float* grad_x) {
  using L = Lanes<Arch>;
  clear_images<Arch>(s, begin, end, grad_x);
  for_windows<Arch>(
      s,
      begin,
      end,
      [&](int64_t pixel, const Window& w, int64_t image) __attribute__((always_inline)) {
        const L count(static_cast<float>((w.bottom - w.top) * (w.right - w.left)));
        for_lanes<Arch>(
            s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
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
