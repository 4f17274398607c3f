#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {
namespace {

/// The part of a window that lies inside the image: rows [top, bottom), columns [left, right).
struct Window {
  int64_t top, bottom, left, right;
  int64_t first_row, first_column;  // of the whole window, maybe outside

  int64_t position(int64_t row, int64_t column, int64_t kw) const {
    return (row - first_row) * kw + column - first_column;
  }
};

/// Calls f(window, first element of y's pixel, first element of x's image) for each pixel of y of
/// the images.
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

void clear(const PoolShape& s, int64_t begin, int64_t end, float* grad_x) {
  for (int64_t i = begin * s.h * s.w * s.c; i < end * s.h * s.w * s.c; ++i) grad_x[i] = 0.0f;
}

}  // namespace

// The first among equals wins; NaN wins over everything. position, that of the winner in its whole
// window, row by row, may be null.
void max_pool2d_f32(
    const PoolShape& s, int64_t begin, int64_t end, const float* x, float* y, uint16_t* position) {
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    for (int64_t c = 0; c < s.c; ++c) {
      int64_t best = -1;
      int64_t best_position = 0;
      for (int64_t u = window.top; u < window.bottom; ++u) {
        for (int64_t v = window.left; v < window.right; ++v) {
          const int64_t i = image + (u * s.w + v) * s.c + c;
          const bool wins = best < 0 || x[i] > x[best] || (x[i] != x[i] && x[best] == x[best]);
          if (!wins) continue;
          best = i;
          best_position = window.position(u, v, s.kw);
        }
      }
      y[pixel + c] = x[best];
      if (position != nullptr) position[pixel + c] = static_cast<uint16_t>(best_position);
    }
  });
}

void max_pool2d_backward_f32(const PoolShape& s,
                             int64_t begin,
                             int64_t end,
                             const float* grad_y,
                             const uint16_t* position,
                             float* grad_x) {
  clear(s, begin, end, grad_x);
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    for (int64_t c = 0; c < s.c; ++c) {
      const int64_t u = window.first_row + position[pixel + c] / s.kw;
      const int64_t v = window.first_column + position[pixel + c] % s.kw;
      grad_x[image + (u * s.w + v) * s.c + c] += grad_y[pixel + c];
    }
  });
}

void avg_pool2d_f32(const PoolShape& s, int64_t begin, int64_t end, const float* x, float* y) {
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    const int64_t count = (window.bottom - window.top) * (window.right - window.left);
    for (int64_t c = 0; c < s.c; ++c) {
      float sum = 0.0f;
      for (int64_t u = window.top; u < window.bottom; ++u) {
        for (int64_t v = window.left; v < window.right; ++v)
          sum += x[image + (u * s.w + v) * s.c + c];
      }
      y[pixel + c] = sum / static_cast<float>(count);
    }
  });
}

void avg_pool2d_backward_f32(
    const PoolShape& s, int64_t begin, int64_t end, const float* grad_y, float* grad_x) {
  clear(s, begin, end, grad_x);
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    const int64_t count = (window.bottom - window.top) * (window.right - window.left);
    for (int64_t u = window.top; u < window.bottom; ++u) {
      for (int64_t v = window.left; v < window.right; ++v) {
        for (int64_t c = 0; c < s.c; ++c) {
          grad_x[image + (u * s.w + v) * s.c + c] += grad_y[pixel + c] / static_cast<float>(count);
        }
      }
    }
  });
}

void max_pool2d_u8(const PoolShape& s,
                   int64_t begin,
                   int64_t end,
                   const uint8_t* x,
                   uint8_t* y,
                   uint16_t* position) {
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    for (int64_t c = 0; c < s.c; ++c) {
      int32_t largest = -1;
      int64_t where = 0;
      for (int64_t u = window.top; u < window.bottom; ++u) {
        for (int64_t v = window.left; v < window.right; ++v) {
          const uint8_t code = x[image + (u * s.w + v) * s.c + c];
          if (code <= largest) continue;
          largest = code;
          where = window.position(u, v, s.kw);
        }
      }
      y[pixel + c] = static_cast<uint8_t>(largest);
      if (position != nullptr) position[pixel + c] = static_cast<uint16_t>(where);
    }
  });
}

void sum_pool2d_u8_s32(const PoolShape& s,
                       int64_t begin,
                       int64_t end,
                       const uint8_t* x,
                       int32_t zero_x,
                       int32_t* sums) {
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    for (int64_t c = 0; c < s.c; ++c) {
      int32_t sum = 0;
      for (int64_t u = window.top; u < window.bottom; ++u) {
        for (int64_t v = window.left; v < window.right; ++v)
          sum += x[image + (u * s.w + v) * s.c + c] - zero_x;
      }
      sums[pixel + c] = sum;
    }
  });
}

}  // namespace quantrain::kernels::reference
