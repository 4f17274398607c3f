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

}  // namespace quantrain::kernels::reference
