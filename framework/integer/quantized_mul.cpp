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

Channels QuantizedMul::output_channels(InputChannels inputs) const {
  // b has one factor for each channel of a, the same for every row. So if one operand has fewer
  // intervals, they are repeated.
  const size_t size = std::max(inputs[0]->size(), inputs[1]->size());
  const Channels a = over(*inputs[0], static_cast<int64_t>(size));
  const Channels b = over(*inputs[1], static_cast<int64_t>(size));
  Channels result;
  for (size_t c = 0; c < size; ++c) {
    const Interval low = product_of(b[c].lo - zero_b, a[c], zero_a);
    const Interval high = product_of(b[c].hi - zero_b, a[c], zero_a);
    result.push_back(through(low.joined(high), [&](int64_t acc) {
      return requantize(static_cast<int32_t>(acc), multiplier, y.zero_point, y.lo, y.hi);
    }));
  }
  return result;
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
