#include "framework/autograd/ops/concatenated_codes.hpp"

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {

ConcatenatedCodes::ConcatenatedCodes(int64_t rows, std::vector<Part> parts)
    : rows_(rows), parts_(std::move(parts)) {
  for (const Part& part : parts_) row_length_ += part.run;
}

void ConcatenatedCodes::to_float(float* y) const {
  for (const auto& [codes, run] : parts_) {
    for (int64_t row = 0; row < rows_; ++row) {
      kernels::dequantize_u8_f32(run,
                                 codes->u8() + row * run,
                                 codes->params.scale[0],
                                 codes->stored_zero_point(),
                                 y + row * row_length_);
    }
    y += run;
  }
}

void ConcatenatedCodes::requantize(const QParams& y,
                                   Activation activation,
                                   uint8_t* codes,
                                   uint8_t* mask) const {
  const StoredOutput stored(y, activation);
  std::vector<Multiplier> multipliers;
  for (const Part& part : parts_) {
    multipliers.push_back(rescale_multiplier(part.codes->params.scale[0], stored.scale));
  }
  uint8_t* column = codes;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const auto& [x, run] = parts_[p];
    kernels::rescale_rows_u8(rows_,
                             run,
                             x->u8(),
                             x->stored_zero_point(),
                             multipliers[p],
                             stored.zero_point,
                             stored.lo,
                             stored.hi,
                             column,
                             row_length_);
    column += run;
  }
  if (mask == nullptr) return;
  write_range_mask(rows_ * row_length_, stored, mask, [&](int64_t i) {
    const int64_t row = i / row_length_;
    int64_t at = i % row_length_;
    size_t p = 0;
    while (at >= parts_[p].run) at -= parts_[p++].run;
    const auto& [x, run] = parts_[p];
    const int32_t value = x->u8()[row * run + at] - x->stored_zero_point();
    const Multiplier m = multipliers[p];
    return rounding_shift(int64_t{value} * m.m0, m.shift) + stored.zero_point;
  });
}

}  // namespace quantrain
