#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain::kernels {
namespace {

// A multiple of 8, so that no two blocks share a byte of a mask.
constexpr int64_t kGrain = 1 << 15;

}  // namespace

void requantize_s32_u8(int64_t rows,
                       int64_t channels,
                       const int32_t* acc,
                       const RequantizeU8& r,
                       uint8_t* y,
                       uint8_t* mask,
                       int32_t mask_lo,
                       int32_t mask_hi) {
  parallel_for(rows * channels, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % channels;
      const int64_t code = rounding_shift(int64_t{acc[i]} * r.m0[c], r.shift[c]) + r.zero_point;
      y[i] = static_cast<uint8_t>(std::clamp<int64_t>(code, r.lo, r.hi));
      if (mask == nullptr) continue;
      if (i % 8 == 0) mask[i / 8] = 0;
      if (code >= mask_lo && code <= mask_hi) mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    }
  });
}

void dequantize_s32_f32(
    int64_t rows, int64_t channels, const int32_t* acc, const double* scale, float* y) {
  parallel_for(rows * channels, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(scale[i % channels] * acc[i]);
  });
}

void add_u8(int64_t n,
            const uint8_t* a,
            int32_t zero_a,
            const uint8_t* b,
            int32_t zero_b,
            const AddMultipliers& m,
            int32_t zero_y,
            int32_t lo,
            int32_t hi,
            uint8_t* y) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<uint8_t>(requantize_add(a[i] - zero_a, b[i] - zero_b, m, zero_y, lo, hi));
    }
  });
}

void rescale_u8(int64_t n,
                const uint8_t* x,
                int32_t zero_x,
                Multiplier multiplier,
                int32_t zero_y,
                int32_t lo,
                int32_t hi,
                uint8_t* y) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<uint8_t>(requantize(x[i] - zero_x, multiplier, zero_y, lo, hi));
    }
  });
}

bool quantize_f32_u8(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask) {
  return quantize_channels_f32_u8(n, 1, n, x, &q, codes, mask);
}

bool quantize_channels_f32_u8(int64_t n,
                              int64_t channels,
                              int64_t inner,
                              const float* x,
                              const QuantizeF32* parameters,
                              uint8_t* codes,
                              uint8_t* mask) {
  std::atomic<bool> finite = true;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    bool block_finite = true;
    for (int64_t i = begin; i < end; ++i) {
      const QuantizeF32& q = parameters[i / inner % channels];
      if (mask != nullptr && i % 8 == 0) mask[i / 8] = 0;
      if (!std::isfinite(x[i])) {
        block_finite = false;
        continue;
      }
      codes[i] =
          static_cast<uint8_t>(quantize(x[i], q.scale, q.zero_point, q.qmin, q.qmax) + q.offset);
      if (mask != nullptr && gradient_passes(x[i], q.scale, q.zero_point, q.qmin, q.qmax)) {
        mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
      }
    }
    if (!block_finite) finite = false;
  });
  return finite;
}

void dequantize_u8_f32(int64_t n, const uint8_t* codes, float scale, int32_t zero_point, float* y) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = dequantize(codes[i], scale, zero_point);
  });
}

void min_max_f32(int64_t n, const float* x, float* min, float* max) {
  min_max_channels_f32(n, 1, n, x, min, max);
}

void min_max_channels_f32(
    int64_t n, int64_t channels, int64_t inner, const float* x, float* min, float* max) {
  for (int64_t c = 0; c < channels; ++c) {
    min[c] = std::numeric_limits<float>::infinity();
    max[c] = -std::numeric_limits<float>::infinity();
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = i / inner % channels;
    // A NaN stays: every comparison with it is false.
    if (!(x[i] >= min[c]) && !std::isnan(min[c])) min[c] = x[i];
    if (!(x[i] <= max[c]) && !std::isnan(max[c])) max[c] = x[i];
  }
}

void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = (mask[i / 8] >> i % 8 & 1) != 0 ? x[i] : 0.0f;
  });
}

}  // namespace quantrain::kernels
