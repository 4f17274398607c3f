#include <algorithm>
#include <cmath>

#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {

void min_max_f32(int64_t n, const float* x, float* min, float* max) {
  float low = x[0];
  float high = x[0];
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      *min = *max = x[i];
      return;
    }
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  // The sign of a zero would depend on the order of the elements. Adding 0 turns -0 into 0.
  *min = low + 0.0f;
  *max = high + 0.0f;
}

void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = (mask[i / 8] >> i % 8 & 1) != 0 ? x[i] : 0.0f;
}

// rows is at least 1.
void column_extremes_s32(
    int64_t rows, int64_t channels, const int32_t* acc, int32_t* min, int32_t* max) {
  for (int64_t c = 0; c < channels; ++c) {
    min[c] = max[c] = acc[c];
    for (int64_t row = 1; row < rows; ++row) {
      min[c] = std::min(min[c], acc[row * channels + c]);
      max[c] = std::max(max[c], acc[row * channels + c]);
    }
  }
}

// Bit i of mask is set if acc[i] > 0 and, unless minus_hi is null, acc[i] <= -minus_hi[i % period].
void positive_mask_s32(
    int64_t n, int64_t period, const int32_t* acc, const int32_t* minus_hi, uint8_t* mask) {
  for (int64_t i = 0; i < n; ++i) {
    const bool below = minus_hi == nullptr || int64_t{acc[i]} + minus_hi[i % period] <= 0;
    if (i % 8 == 0) mask[i / 8] = 0;
    if (acc[i] > 0 && below) mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
  }
}

}  // namespace quantrain::kernels::reference
