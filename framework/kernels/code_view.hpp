#pragma once

#include <cstdint>

namespace quantrain::kernels {

/// Codes that represent floats, stored as bytes. A byte b of channel c represents
///   scale[c * step] * (b - offset - zero_point[c * step]).   docs/quantization.md (1)
struct CodeView {
  const uint8_t* bytes = nullptr;
  bool is_signed = false;  ///< bytes are in two's complement
  int32_t offset = 0;      ///< a stored byte is code + offset
  const float* scale = nullptr;
  const int32_t* zero_point = nullptr;
  int64_t step = 0;  ///< 0: one scale and zero point for all channels

  /// Dequantizes n bytes, beginning at bytes[at], with the scale and zero point of `channel`. Runs
  /// in the calling thread.
  void to_float(int64_t channel, int64_t at, int64_t n, float* y) const;
  /// The same for each channel c in [begin, end): n bytes, beginning at bytes[c * stride + at],
  /// with c's scale and zero point, to y + (c - begin) * y_stride.
  void rows_to_float(int64_t begin,
                     int64_t end,
                     int64_t stride,
                     int64_t at,
                     int64_t n,
                     float* y,
                     int64_t y_stride) const;
};

}  // namespace quantrain::kernels
