#include "framework/autograd/ops/sum_of_codes.hpp"

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/kernels/elementwise.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {

SumOfCodes::SumOfCodes(std::shared_ptr<const Codes> a, std::shared_ptr<const Codes> b)
    : a_(std::move(a)), b_(std::move(b)) {}

void SumOfCodes::to_float(float* y) const {
  const int64_t n = a_->bytes.size();
  Buffer<float> b(n);
  kernels::dequantize_u8_f32(n, a_->u8(), a_->params.scale[0], a_->stored_zero_point(), y);
  kernels::dequantize_u8_f32(n, b_->u8(), b_->params.scale[0], b_->stored_zero_point(), b.data());
  kernels::add_f32(n, y, b.data(), y);
}

void SumOfCodes::requantize(const QParams& y,
                            Activation activation,
                            uint8_t* codes,
                            uint8_t* mask) const {
  const StoredOutput stored(y, activation);
  const AddMultipliers m = add_multipliers(a_->params.scale[0], b_->params.scale[0], stored.scale);
  kernels::add_u8(a_->bytes.size(),
                  a_->u8(),
                  a_->stored_zero_point(),
                  b_->u8(),
                  b_->stored_zero_point(),
                  m,
                  stored.zero_point,
                  stored.lo,
                  stored.hi,
                  codes,
                  mask,
                  stored.mask_lo,
                  stored.mask_hi);
}

}  // namespace quantrain
