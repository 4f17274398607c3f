#pragma once

#include "framework/kernels/simd/integer_vector.hpp"

// For training with quantization: masks, masked gradients, and the ranges of values and of sums.
namespace quantrain::kernels::simd {

template <class Arch>
void min_max_f32(int64_t n, const float* x, float* min, float* max) {
  using I = Ints<Arch>;
  float low = x[0];
  float high = x[0];
  int64_t i = 0;
  if (n >= 2 * I::kLanes) {
    typename I::Float lows[2] = {I::load(x), I::load(x + I::kLanes)};
    typename I::Float highs[2] = {lows[0], lows[1]};
    typename I::Int bad[2] = {I::not_finite(lows[0]), I::not_finite(lows[1])};
    for (i = 2 * I::kLanes; i + 2 * I::kLanes <= n; i += 2 * I::kLanes) {
#pragma GCC unroll 2
      for (int u = 0; u < 2; ++u) {
        const typename I::Float v = I::load(x + i + u * I::kLanes);
        lows[u] = I::min(lows[u], v);
        highs[u] = I::max(highs[u], v);
        bad[u] = I::bit_or(bad[u], I::not_finite(v));
      }
    }
    if (I::any(I::bit_or(bad[0], bad[1]))) {  // a NaN or an infinity
      i = 0;
    } else {
      low = I::smallest(I::min(lows[0], lows[1]));
      high = I::largest(I::max(highs[0], highs[1]));
    }
  }
  const float* nan = nullptr;
  for (; i < n && nan == nullptr; ++i) {
    if (x[i] != x[i]) nan = x + i;
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
  }
  // The sign of a zero would depend on the order of the elements. Adding 0 turns -0 into 0.
  *min = nan != nullptr ? *nan : low + 0.0f;
  *max = nan != nullptr ? *nan : high + 0.0f;
}

template <class Arch>
void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y) {
  using I = Ints<Arch>;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const uint32_t bits = mask[i / 8] | static_cast<uint32_t>(mask[i / 8 + 1]) << 8;
#pragma GCC unroll 4
    for (int j = 0; j < 16; j += I::kLanes) {
      I::store(y + i + j, I::keep(bits >> j, I::load(x + i + j)));
    }
  }
  for (; i < n; ++i) y[i] = (mask[i / 8] >> i % 8 & 1) != 0 ? x[i] : 0.0f;
}

// The compiler vectorizes the loops over channels.
template <class Arch>
void column_extremes_s32(
    int64_t rows, int64_t channels, const int32_t* acc, int32_t* min, int32_t* max) {
  constexpr int64_t kBlock = 64;
  int32_t low[kBlock];
  int32_t high[kBlock];
  for (int64_t first = 0; first < channels; first += kBlock) {
    const int64_t count = channels - first < kBlock ? channels - first : kBlock;
    for (int64_t c = 0; c < count; ++c) low[c] = high[c] = acc[first + c];
    for (int64_t row = 1; row < rows; ++row) {
      const int32_t* const from = acc + row * channels + first;
      for (int64_t c = 0; c < count; ++c) {
        low[c] = from[c] < low[c] ? from[c] : low[c];
        high[c] = from[c] > high[c] ? from[c] : high[c];
      }
    }
    for (int64_t c = 0; c < count; ++c) {
      min[first + c] = low[c];
      max[first + c] = high[c];
    }
  }
}

// A plain loop, because g++ 12 with the address sanitizer breaks comparisons of whole AVX-512
// vectors here.
template <class Arch>
void positive_mask_s32(
    int64_t n, int64_t period, const int32_t* acc, const int32_t* minus_hi, uint8_t* mask) {
  int64_t channel = 0;
  for (int64_t i = 0; i < n; i += 8) {
    const int64_t count = n - i < 8 ? n - i : 8;
    uint32_t bits = 0;
    for (int64_t j = 0; j < count; ++j) {
      const int32_t v = acc[i + j];
      // v is positive and minus_hi is not, so their sum does not overflow.
      const bool passes = v > 0 && (minus_hi == nullptr || v + minus_hi[channel + j] <= 0);
      bits |= static_cast<uint32_t>(passes) << j;
    }
    mask[i / 8] = static_cast<uint8_t>(bits);
    channel += 8;
    if (channel >= period) channel = 0;
  }
}

}  // namespace quantrain::kernels::simd
