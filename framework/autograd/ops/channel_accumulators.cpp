#include "framework/autograd/ops/channel_accumulators.hpp"

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {

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
    const Multiplier multiplier = make_multiplier(scale / stored.scale);
    m0.push_back(multiplier.m0);
    shift.push_back(multiplier.shift);
  }
  const kernels::RequantizeU8 requantize{
      m0.data(), shift.data(), stored.zero_point, stored.lo, stored.hi};
  kernels::requantize_s32_u8(
      rows(), channels(), values(), requantize, codes, mask, stored.mask_lo, stored.mask_hi);
}

// Scales are positive: the sign of the sum is that of the real value.
void ChannelAccumulators::activation_mask(int64_t n, Activation activation, uint8_t* mask) const {
  const int32_t* const acc = values();
  if (activation != Activation::kRelu6) {
    write_mask(n, mask, [&](int64_t i) { return acc[i] > 0; });
    return;
  }
  const int64_t count = channels();
  write_mask(n, mask, [&](int64_t i) {
    const double scale = scale_[static_cast<size_t>(i % count)];
    return acc[i] > 0 && static_cast<float>(scale * acc[i]) < 6.0f;
  });
}

}  // namespace quantrain
