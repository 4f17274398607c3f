#pragma once

#include "framework/kernels/params.hpp"

namespace quantrain::kernels::simd {

/// The part of a pooling window inside the image: rows [top, bottom), columns [left, right).
template <class Arch>
struct Window {
  int64_t top, bottom, left, right;
  int64_t first_row, first_column;  ///< of the whole window; may lie outside the image
  int64_t kw;

  QUANTRAIN_INLINE int64_t pixels() const { return (bottom - top) * (right - left); }
  /// The position in the whole window, counted row by row.
  QUANTRAIN_INLINE int64_t position(int64_t row, int64_t column) const {
    return (row - first_row) * kw + column - first_column;
  }
};

/// Calls f(first element of the pixel in y, window, first element of the image in x) for each pixel
/// of y in the images [begin, end).
template <class Arch, class F>
inline QUANTRAIN_INLINE void for_windows(const PoolShape& s,
                                         int64_t begin,
                                         int64_t end,
                                         const F& f) {
  Window<Arch> w{};
  w.kw = s.kw;
  for (int64_t line = begin * s.oh; line < end * s.oh; ++line) {
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

}  // namespace quantrain::kernels::simd
