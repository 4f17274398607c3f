#include "framework/integer/quantized_add.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/quantized_product.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

QuantizedAdd QuantizedAdd::make(
    int64_t size, const QParams& a, const QParams& b, const QParams& y, Activation activation) {
  check_activation(a, "add");
  check_activation(b, "add");
  return {.size = size,
          .zero_a = stored_zero_point(a),
          .zero_b = stored_zero_point(b),
          .multipliers = add_multipliers(a.scale[0], b.scale[0], y.scale[0]),
          .y = stored_output(y, activation)};
}

void QuantizedAdd::validate(std::string_view where) const {
  check_size(where, {size});
  validate_zero_point(zero_a, where);
  validate_zero_point(zero_b, where);
  const AddMultipliers& m = multipliers;
  if (m.a < 0 || m.b < 0 || m.shift < 1 || m.shift > 62) {
    throw QuantError(where,
                     "multipliers must not be negative and the shift must be 1 to 62 "
                     "(docs/quantization.md (11)): multipliers ",
                     m.a,
                     " and ",
                     m.b,
                     ", shift ",
                     m.shift);
  }
  integer::validate(y, where);
}

void Prepared<QuantizedAdd>::run(int64_t n,
                                 Inputs inputs,
                                 void* output,
                                 const GradientMask& mask) const {
  kernels::add_u8(n * op_->size,
                  inputs[0],
                  inputs[1],
                  {op_->zero_a, op_->zero_b, op_->multipliers, op_->y},
                  static_cast<uint8_t*>(output),
                  mask);
}

}  // namespace quantrain::integer
