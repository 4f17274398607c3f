#pragma once

#include <vector>

#include "framework/autograd/value.hpp"

namespace quantrain {

/// Exact sums of a linear or convolution over codes: real[i, c] = scale[c] * values[i, c],
/// scale[c] = scale_x * scale_w[c] in double, the quantized bias included.
/// Requantized by M = scale[c] / scale_y.   docs/quantization.md (7), (8)
class ChannelAccumulators : public Accumulators {
 public:
  /// values [rows, channels], with a scale for each channel.
  ChannelAccumulators(Buffer<int32_t> values, std::vector<double> scale);

  const int32_t* values() const { return values_.data(); }
  const std::vector<double>& scale() const { return scale_; }
  int64_t channels() const { return static_cast<int64_t>(scale_.size()); }
  int64_t rows() const { return scale_.empty() ? 0 : values_.size() / channels(); }

  void to_float(float* y) const override;
  void requantize(const QParams& y,
                  Activation activation,
                  uint8_t* codes,
                  uint8_t* mask) const override;
  void activation_mask(int64_t n, Activation activation, uint8_t* mask) const override;
  Range range(int64_t n, Activation activation) const override;

 private:
  Buffer<int32_t> values_;
  std::vector<double> scale_;
};

}  // namespace quantrain
