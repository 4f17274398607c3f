#include "framework/kernels/reference/reference.hpp"
#include "framework/kernels/reference/windows.hpp"

namespace quantrain::kernels::reference {
namespace {

void clear(const PoolShape& s, int64_t begin, int64_t end, float* grad_x) {
  for (int64_t i = begin * s.h * s.w * s.c; i < end * s.h * s.w * s.c; ++i) grad_x[i] = 0.0f;
}

}  // namespace

// The first of equal elements wins; NaN wins over everything. position, which may be null, gets the
// winner's index in its window, counted row by row. The index also counts elements outside the
// image, but these never win.
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

void avg_pool2d_f32(
    const PoolShape& s, int64_t begin, int64_t end, int64_t divisor, const float* x, float* y) {
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    const int64_t count = divisor > 0 ? divisor : window.pixels();
    for (int64_t c = 0; c < s.c; ++c) {
      double sum = 0.0;
      for (int64_t u = window.top; u < window.bottom; ++u) {
        for (int64_t v = window.left; v < window.right; ++v)
          sum += static_cast<double>(x[image + (u * s.w + v) * s.c + c]);
      }
      y[pixel + c] = static_cast<float>(sum) / static_cast<float>(count);
    }
  });
}

void avg_pool2d_backward_f32(const PoolShape& s,
                             int64_t begin,
                             int64_t end,
                             int64_t divisor,
                             const float* grad_y,
                             float* grad_x) {
  clear(s, begin, end, grad_x);
  for_windows(s, begin, end, [&](const Window& window, int64_t pixel, int64_t image) {
    const int64_t count = divisor > 0 ? divisor : window.pixels();
    for (int64_t u = window.top; u < window.bottom; ++u) {
      for (int64_t v = window.left; v < window.right; ++v) {
        for (int64_t c = 0; c < s.c; ++c) {
          grad_x[image + (u * s.w + v) * s.c + c] += grad_y[pixel + c] / static_cast<float>(count);
        }
      }
    }
  });
}

}  // namespace quantrain::kernels::reference
