#pragma once

#include <cstdint>

// What training with quantization asks of floats: their range, and which of them pass.
namespace quantrain::kernels {

/// Smallest and largest element; +-inf as they are, NaN if any. n >= 1.
void min_max_f32(int64_t n, const float* x, float* min, float* max);
/// For each of `channels` runs of `inner` elements, repeated over the tensor.
void min_max_channels_f32(
    int64_t n, int64_t channels, int64_t inner, const float* x, float* min, float* max);
/// y[i] = bit i of mask ? x[i] : 0; y may be x.
void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y);

}  // namespace quantrain::kernels
