#include "framework/integer/quantized_conv2d.hpp"

#include "framework/core/error.hpp"

namespace quantrain::integer {

void QuantizedConv2d::validate(std::string_view where, OverflowCheck& overflow) const {
  check_window(where, shape);
  integer::validate(product, shape.o, shape.reduction(), where, overflow);
}

void QuantizedConv2d::validate(std::string_view where) const {
  OverflowCheck overflow;
  validate(where, overflow);
}

Channels QuantizedConv2d::output_channels(InputChannels inputs) const {
  const kernels::Conv2dShape& s = shape;
  const Channels x = over(*inputs[0], s.c);
  const SharedArray<int8_t> weight = product.weight.codes();
  const bool padded = has_padding(s);
  Channels result;
  for (int64_t o = 0; o < s.o; ++o) {
    Interval sum = product.first_sum(o);
    const int64_t first = o / s.group_o() * s.group_c();
    for (int64_t k = 0; k < s.reduction(); ++k) {
      const Interval term = product_of(weight[o * s.reduction() + k],
                                       x[static_cast<size_t>(first + k % s.group_c())],
                                       product.zero_x);
      sum = sum + (padded ? term.joined({0, 0}) : term);
    }
    result.push_back(product.codes_of(o, sum));
  }
  return result;
}

Prepared<QuantizedConv2d>::Prepared(const QuantizedConv2d& op)
    : op_(&op),
      packed_(op.product.weight.panels(op.weights(), op.product.is_binary())),
      params_(product_params(*packed_, op.product)) {}

void Prepared<QuantizedConv2d>::accumulate(int64_t n, const uint8_t* x, int32_t* acc) const {
  kernels::conv2d_u8s8_s32(with_batch(op_->shape, n), x, *packed_, params_, acc);
}

void Prepared<QuantizedConv2d>::run(int64_t n, Inputs inputs, void* output) const {
  if (!op_->product.output) return accumulate(n, inputs[0], static_cast<int32_t*>(output));
  kernels::conv2d_u8s8_u8(
      with_batch(op_->shape, n), inputs[0], *packed_, params_, static_cast<uint8_t*>(output));
}

}  // namespace quantrain::integer
