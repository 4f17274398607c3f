#include "framework/kernels/reference/reference.hpp"
#include "framework/kernels/reference/windows.hpp"

namespace quantrain::kernels::reference {

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
