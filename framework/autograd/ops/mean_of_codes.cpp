#include "framework/autograd/ops/mean_of_codes.hpp"

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {
namespace {

/// Elements of [first, first + kernel) inside [0, extent).
int64_t inside(int64_t first, int64_t kernel, int64_t extent) {
  return std::min(first + kernel, extent) - std::max<int64_t>(first, 0);
}

}  // namespace

MeanOfCodes::MeanOfCodes(const kernels::Conv2dShape& shape, std::shared_ptr<const Codes> x)
    : shape_(shape), x_(std::move(x)) {}

Buffer<int32_t> MeanOfCodes::sums() const {
  Buffer<int32_t> sums(shape_.y_elements());
  kernels::sum_pool2d_u8_s32(shape_, x_->u8(), x_->stored_zero_point(), sums.data());
  return sums;
}

std::vector<int64_t> MeanOfCodes::counts() const {
  const kernels::Conv2dShape& s = shape_;
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < s.oh(); ++i) {
    for (int64_t j = 0; j < s.ow(); ++j) {
      counts.push_back(inside(i * s.stride_h - s.pad_h, s.kh, s.h) *
                       inside(j * s.stride_w - s.pad_w, s.kw, s.w));
    }
  }
  return counts;
}

void MeanOfCodes::to_float(float* y) const {
  const std::vector<int64_t> counts = this->counts();
  const Buffer<int32_t> sums = this->sums();
  const double scale = static_cast<double>(x_->params.scale[0]);
  for (int64_t i = 0; i < sums.size(); ++i) {
    const int64_t count = counts[static_cast<size_t>(i / shape_.c) % counts.size()];
    y[i] = static_cast<float>(scale * sums[i] / static_cast<double>(count));
  }
}

void MeanOfCodes::requantize(const QParams& y,
                             Activation activation,
                             uint8_t* codes,
                             uint8_t* mask) const {
  const StoredOutput stored(y, activation);
  const std::vector<Multiplier> multipliers =
      mean_multipliers(x_->params.scale[0], shape_.kh * shape_.kw, stored.scale);
  kernels::avg_pool2d_u8(shape_,
                         x_->u8(),
                         x_->stored_zero_point(),
                         multipliers.data(),
                         stored.zero_point,
                         stored.lo,
                         stored.hi,
                         codes);
  if (mask == nullptr) return;
  const std::vector<int64_t> counts = this->counts();
  const Buffer<int32_t> sums = this->sums();
  write_range_mask(sums.size(), stored, mask, [&](int64_t i) {
    const int64_t count = counts[static_cast<size_t>(i / shape_.c) % counts.size()];
    const Multiplier m = multipliers[static_cast<size_t>(count - 1)];
    return rounding_shift(int64_t{sums[i]} * m.m0, m.shift) + stored.zero_point;
  });
}

}  // namespace quantrain
