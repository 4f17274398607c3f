#pragma once

#include <cstdint>

// For training with quantization: masks, masked gradients, and the ranges of values and of sums.
namespace quantrain::kernels {

/// Smallest and largest element, which may be infinite. Both are NaN if any element is. n >= 1.
void min_max_f32(int64_t n, const float* x, float* min, float* max);
/// The same for each channel of x [.., channels, inner].
void min_max_channels_f32(
    int64_t n, int64_t channels, int64_t inner, const float* x, float* min, float* max);
/// y[i] = bit i of mask ? x[i] : 0; y may be x.
void mask_f32(int64_t n, const float* x, const uint8_t* mask, float* y);
/// Smallest and largest element of each column; rows >= 1.
void column_extremes_s32(
    int64_t rows, int64_t channels, const int32_t* acc, int32_t* min, int32_t* max);
/// Bit i * channels + c of mask is set if 0 < acc[i, c] and, unless hi is null, acc[i, c] <= hi[c].
/// hi[c] >= 0.
void positive_mask_s32(
    int64_t rows, int64_t channels, const int32_t* acc, const int32_t* hi, uint8_t* mask);

}  // namespace quantrain::kernels
