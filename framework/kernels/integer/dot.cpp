#include "framework/kernels/integer/dot.hpp"

#include <algorithm>

namespace quantrain::kernels {

// The table's kernel requantizes only if RequantizeU8::round is set. `round` is null if some
// multiplier is 1/4 or more, or below 2^-24. In this case the function below lets the kernel store
// the sums of a few rows and one panel at a time, and requantizes these sums itself.
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p) {
  if (p.acc != nullptr || p.requantize.round != nullptr) return kernels.dot_u8s8(p);
  constexpr int64_t kRows = 8;
  const int64_t width = p.layout.width;
  int32_t sums[kRows * kWidestPanel];
  for (int64_t output = 0; output < p.outputs; output += width) {
    for (int64_t row = 0; row < p.rows; row += kRows) {
      DotU8S8 part = p;
      part.rows = std::min(kRows, p.rows - row);
      part.outputs = std::min(width, p.outputs - output);
      part.x = p.x + row;
      part.w = p.w + output / width * p.panel;
      part.start = p.start + output;
      part.acc = sums;
      part.y = nullptr;
      part.stride = width;
      kernels.dot_u8s8(part);
      for (int64_t r = 0; r < part.rows; ++r) {
        kernels.requantize_s32_u8(part.outputs,
                                  kWidestPanel,
                                  sums + r * width,
                                  p.requantize.from(output),
                                  p.y + (row + r) * p.stride + output,
                                  nullptr,
                                  0,
                                  0);
      }
    }
  }
}

}  // namespace quantrain::kernels
