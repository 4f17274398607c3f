#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

namespace quantrain::kernels::reference {

/// The part of a window that lies inside the image: rows [top, bottom), columns [left, right).
struct Window {
  int64_t top, bottom, left, right;
  int64_t first_row, first_column;  // where the window starts; may lie outside the image

  int64_t pixels() const { return (bottom - top) * (right - left); }
  int64_t position(int64_t row, int64_t column, int64_t kw) const {
    return (row - first_row) * kw + column - first_column;
  }
};

/// Calls f(window, first element of the pixel in y, first element of the image in x) for each pixel
/// of y in the images [begin, end).
template <class F>
void for_windows(const PoolShape& s, int64_t begin, int64_t end, F&& f) {
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t i = 0; i < s.oh; ++i) {
      for (int64_t j = 0; j < s.ow; ++j) {
        const int64_t top = i * s.stride_h - s.pad_h;
        const int64_t left = j * s.stride_w - s.pad_w;
        const Window inside{top < 0 ? 0 : top,
                            top + s.kh > s.h ? s.h : top + s.kh,
                            left < 0 ? 0 : left,
                            left + s.kw > s.w ? s.w : left + s.kw,
                            top,
                            left};
        f(inside, ((n * s.oh + i) * s.ow + j) * s.c, n * s.h * s.w * s.c);
      }
    }
  }
}

}  // namespace quantrain::kernels::reference
