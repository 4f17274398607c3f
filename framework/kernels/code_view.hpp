#pragma once

#include <cstdint>

namespace quantrain::kernels {

/// Bytes that represent floats: byte b of channel c means
///   scale[c * step] * (b - offset - zero_point[c * step]).   docs/quantization.md (1)
struct CodeView {
  const uint8_t* bytes = nullptr;
  bool is_signed = false;  ///< bytes are in two's complement
  int32_t offset = 0;
  const float* scale = nullptr;
  const int32_t* zero_point = nullptr;
  int64_t step = 0;  ///< 0: one scale and zero point for all channels

  /// Dequantizes n bytes of a channel, from byte `at` on, in the calling thread.
  void to_float(int64_t channel, int64_t at, int64_t n, float* y) const;
};

}  // namespace quantrain::kernels
