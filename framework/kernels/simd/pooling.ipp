#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Pooling with lanes along the channels.
namespace quantrain::kernels::simd {

/// Calls f(pixel of y, top, bottom, left, right, first element of x's image): the window of each
/// pixel of the images [begin, end) as far as it is inside.
template <class Arch, class F>
QUANTRAIN_LANES void for_windows(const PoolShape& s, int64_t begin, int64_t end, const F& f) {
  for (int64_t line = begin * s.oh; line < end * s.oh; ++line) {
    const int64_t first_row = line % s.oh * s.stride_h - s.pad_h;
    const int64_t top = first_row < 0 ? 0 : first_row;
    const int64_t bottom = first_row + s.kh > s.h ? s.h : first_row + s.kh;
    const int64_t image = line / s.oh * s.h * s.w * s.c;
    for (int64_t j = 0; j < s.ow; ++j) {
      const int64_t first_column = j * s.stride_w - s.pad_w;
      const int64_t left = first_column < 0 ? 0 : first_column;
      const int64_t right = first_column + s.kw > s.w ? s.w : first_column + s.kw;
      f((line * s.ow + j) * s.c, top, bottom, left, right, image);
    }
  }
}

/// Flat indices first, first + 1, .. as the bits of floats.
template <class Arch>
QUANTRAIN_LANES Lanes<Arch> indices(int64_t first) {
  using L = Lanes<Arch>;
  using Ints = Batch<int32_t, Arch>;
  static constexpr int32_t kCount[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  L lanes;
  for (int i = 0; i < L::kParts; ++i) {
    lanes.part[i] = as_floats<Arch>(Ints::load_unaligned(kCount + i * L::kEach) +
                                    Ints(static_cast<int32_t>(first)));
  }
  return lanes;
}

template <class Arch>
QUANTRAIN_LANES typename Lanes<Arch>::Mask same_bits(const Lanes<Arch>& a, const Lanes<Arch>& b) {
  typename Lanes<Arch>::Mask mask;
  for (int i = 0; i < Lanes<Arch>::kParts; ++i) {
    mask.part[i] = same_lanes<Arch>(as_ints<Arch>(a.part[i]), as_ints<Arch>(b.part[i]));
  }
  return mask;
}

template <class Arch>
void max_pool2d_f32(
    const PoolShape& s, int64_t begin, int64_t end, const float* x, float* y, int32_t* index) {
  using L = Lanes<Arch>;
  for_windows<Arch>(
      s,
      begin,
      end,
      [&](int64_t pixel, int64_t top, int64_t bottom, int64_t left, int64_t right, int64_t image)
          __attribute__((always_inline)) {
            for_lanes<Arch>(
                s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
                  const int64_t first = image + (top * s.w + left) * s.c + c;
                  L best = at.load(x + first);
                  L where = indices<Arch>(first);
                  for (int64_t u = top; u < bottom; ++u) {
                    for (int64_t v = left; v < right; ++v) {
                      const int64_t i = image + (u * s.w + v) * s.c + c;
                      const L other = at.load(x + i);
                      const auto wins = (other > best) | (isnan(other) & (best == best));
                      best = select(wins, other, best);
                      where = select(wins, indices<Arch>(i), where);
                    }
                  }
                  at.store(y + pixel + c, best);
                  if (index != nullptr) at.store(index + pixel + c, where);
                });
          });
}

template <class Arch>
QUANTRAIN_LANES void clear_images(const PoolShape& s, int64_t begin, int64_t end, float* grad_x) {
  const int64_t image = s.h * s.w * s.c;
  __builtin_memset(
      grad_x + begin * image, 0, sizeof(float) * static_cast<size_t>((end - begin) * image));
}

// Each element of a window takes the gradient where the index is its own: no scatter.
template <class Arch>
void max_pool2d_backward_f32(const PoolShape& s,
                             int64_t begin,
                             int64_t end,
                             const float* grad_y,
                             const int32_t* index,
                             float* grad_x) {
  using L = Lanes<Arch>;
  clear_images<Arch>(s, begin, end, grad_x);
  const L zero(0.0f);
  for_windows<Arch>(
      s,
      begin,
      end,
      [&](int64_t pixel, int64_t top, int64_t bottom, int64_t left, int64_t right, int64_t image)
          __attribute__((always_inline)) {
            for_lanes<Arch>(
                s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
                  const L grad = at.load(grad_y + pixel + c);
                  const L where = at.load(index + pixel + c);
                  for (int64_t u = top; u < bottom; ++u) {
                    for (int64_t v = left; v < right; ++v) {
                      const int64_t i = image + (u * s.w + v) * s.c + c;
                      const L own = select(same_bits<Arch>(where, indices<Arch>(i)), grad, zero);
                      at.store(grad_x + i, at.load(grad_x + i) + own);
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
      [&](int64_t pixel, int64_t top, int64_t bottom, int64_t left, int64_t right, int64_t image)
          __attribute__((always_inline)) {
            const L count(static_cast<float>((bottom - top) * (right - left)));
            for_lanes<Arch>(
                s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
                  L total(0.0f);
                  for (int64_t u = top; u < bottom; ++u) {
                    for (int64_t v = left; v < right; ++v)
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
      [&](int64_t pixel, int64_t top, int64_t bottom, int64_t left, int64_t right, int64_t image)
          __attribute__((always_inline)) {
            const L count(static_cast<float>((bottom - top) * (right - left)));
            for_lanes<Arch>(
                s.c, [&](int64_t c, auto at) __attribute__((always_inline)) {
                  const L share = at.load(grad_y + pixel + c) / count;
                  for (int64_t u = top; u < bottom; ++u) {
                    for (int64_t v = left; v < right; ++v) {
                      float* const to = grad_x + image + (u * s.w + v) * s.c + c;
                      at.store(to, at.load(to) + share);
                    }
                  }
                });
          });
}

}  // namespace quantrain::kernels::simd
