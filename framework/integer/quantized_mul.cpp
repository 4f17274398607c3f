#include "framework/integer/quantized_mul.hpp"

#include "framework/integer/quantized_product.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

QuantizedMul QuantizedMul::make(int64_t rows,
                                int64_t channels,
                                const QParams& a,
                                const QParams& b,
                                const QParams& y,
                                Activation activation) {
  check_activation(a, "mul");
  check_activation(b, "mul");
  const StoredOutput output = stored_output(y, activation);
  return {.rows = rows,
          .channels = channels,
          .zero_a = stored_zero_point(a),
          .zero_b = stored_zero_point(b),
          .multiplier = sum_multiplier(sum_scale(a.scale[0], b.scale[0]), y.scale[0]),
          .y = output};
}

void QuantizedMul::validate(std::string_view where) const {
  check_size(where, {rows, channels});
  validate_zero_point(zero_a, where);
  validate_zero_point(zero_b, where);
  integer::validate(multiplier, where);
  integer::validate(y, where);
}

void Prepared<QuantizedMul>::run(int64_t n,
                                 Inputs inputs,
                                 void* output,
                                 const GradientMask& mask) const {
  kernels::mul_u8(n,
                  op_->rows,
                  op_->channels,
                  inputs[0],
                  inputs[1],
                  {op_->zero_a, op_->zero_b, op_->multiplier, op_->y},
                  static_cast<uint8_t*>(output),
                  mask);
}

}  // namespace quantrain::integer
