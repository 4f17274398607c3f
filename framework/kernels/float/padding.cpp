#include "framework/kernels/float/padding.hpp"

#include <algorithm>

namespace quantrain::kernels {

bool is_padded(const Conv2dShape& s) {
  constexpr int64_t kShortSum = 64;
  return s.groups == 1 && s.reduction() <= kShortSum && s.stride_h == 1 && s.stride_w == 1 &&
         (s.pad_h > 0 || s.pad_w > 0);
}

Conv2dShape with_padding(Conv2dShape s) {
  s.h += 2 * s.pad_h;
  s.w += 2 * s.pad_w;
  s.pad_h = s.pad_w = 0;
  return s;
}

void pad_lines(const Conv2dShape& s, const float* x, int64_t begin, int64_t end, float* to) {
  const int64_t h = s.h + 2 * s.pad_h;
  const int64_t step = (s.w + 2 * s.pad_w) * s.c;
  const int64_t line = s.w * s.c;
  std::fill_n(to, (end - begin) * step, 0.0f);
  for (int64_t image = begin / h; image * h < end; ++image) {
    const int64_t first = image * h + s.pad_h;
    const int64_t last = std::min(end, first + s.h);
    for (int64_t row = std::max(begin, first); row < last; ++row) {
      const float* const from = x + (image * s.h + row - first) * line;
      std::copy_n(from, line, to + (row - begin) * step + s.pad_w * s.c);
    }
  }
}

}  // namespace quantrain::kernels
