#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {

void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask) {
  for (int64_t i = 0; i < n; ++i) {
    if (mask != nullptr && i % 8 == 0) mask[i / 8] = 0;
    if (mask != nullptr && x[i] > 0.0f && x[i] < hi) mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    y[i] = x[i] > 0.0f ? (x[i] < hi ? x[i] : hi) : 0.0f;
  }
}

}  // namespace quantrain::kernels::reference
