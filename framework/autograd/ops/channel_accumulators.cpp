#include "framework/autograd/ops/channel_accumulators.hpp"

#include <algorithm>
#include <limits>

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {
namespace {

/// The largest sum whose real value, in float32, is below 6; at least 0.
int32_t largest_below_six(double scale) {
  int64_t lo = 0;
  int64_t hi = std::numeric_limits<int32_t>::max();
  while (lo < hi) {
    const int64_t middle = lo + (hi - lo + 1) / 2;
    if (static_cast<float>(scale * static_cast<double>(middle)) < 6.0f) {
      lo = middle;
    } else {
      hi = middle - 1;
    }
  }
  return static_cast<int32_t>(lo);
}

}  // namespace

ChannelAccumulators::ChannelAccumulators(Buffer<int32_t> values, std::vector<double> scale)
    : values_(std::move(values)), scale_(std::move(scale)) {}

void ChannelAccumulators::to_float(float* y) const {
  kernels::dequantize_s32_f32(rows(), channels(), values(), scale_.data(), y);
}

void ChannelAccumulators::requantize(const QParams& y,
                                     Activation activation,
                                     uint8_t* codes,
                                     uint8_t* mask) const {
  const StoredOutput stored(y, activation);
  std::vector<int32_t> m0;
  std::vector<int32_t> shift;
  for (const double scale : scale_) {
    const Multiplier multiplier = sum_multiplier(scale, stored.scale);
    m0.push_back(multiplier.m0);
    shift.push_back(multiplier.shift);
  }
  const kernels::RequantizeU8 requantize{
      m0.data(), shift.data(), stored.zero_point, stored.lo, stored.hi};
  kernels::requantize_s32_u8(
      rows(), channels(), values(), requantize, codes, mask, stored.mask_lo, stored.mask_hi);
}

// Scales are positive: the sign of the sum is that of the real value, and the largest sum is the
// largest real value.
void ChannelAccumulators::activation_mask(int64_t, Activation activation, uint8_t* mask) const {
  std::vector<int32_t> below_six;
  if (activation == Activation::kRelu6) {
    for (const double scale : scale_) below_six.push_back(largest_below_six(scale));
  }
  const int32_t* const hi = below_six.empty() ? nullptr : below_six.data();
  kernels::positive_mask_s32(rows(), channels(), values(), hi, mask);
}

Range ChannelAccumulators::range(int64_t, Activation activation) const {
  std::vector<int32_t> min(scale_.size());
  std::vector<int32_t> max(scale_.size());
  kernels::column_extremes_s32(rows(), channels(), values(), min.data(), max.data());
  Range range{__builtin_inff(), -__builtin_inff()};
  for (size_t c = 0; c < scale_.size(); ++c) {
    range.min = std::min(range.min, static_cast<float>(scale_[c] * min[c]));
    range.max = std::max(range.max, static_cast<float>(scale_[c] * max[c]));
  }
  return activated(range, activation);
}

}  // namespace quantrain
