#include "framework/integer/quantized_linear.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

void QuantizedLinear::validate(std::string_view where, OverflowCheck& overflow) const {
  check_size(where, {rows, inputs});
  check_size(where, {rows, outputs});
  integer::validate(product, outputs, inputs, where, overflow);
}

void QuantizedLinear::validate(std::string_view where) const {
  OverflowCheck overflow;
  validate(where, overflow);
}

Channels QuantizedLinear::output_channels(InputChannels in) const {
  const Channels x = over(*in[0], inputs);
  const SharedArray<int8_t> weight = product.weight.codes();
  Channels result;
  for (int64_t o = 0; o < outputs; ++o) {
    Interval sum = product.first_sum(o);
    for (int64_t i = 0; i < inputs; ++i) {
      sum = sum + product_of(weight[o * inputs + i], x[static_cast<size_t>(i)], product.zero_x);
    }
    result.push_back(product.codes_of(o, sum));
  }
  return result;
}

Prepared<QuantizedLinear>::Prepared(const QuantizedLinear& op)
    : op_(&op),
      packed_(op.product.weight.panels(op.weights(), op.product.is_binary())),
      params_(product_params(*packed_, op.product)) {}

void Prepared<QuantizedLinear>::accumulate(int64_t n, const uint8_t* x, int32_t* acc) const {
  kernels::gemm_u8s8_s32(n * op_->rows, op_->inputs, x, *packed_, params_, acc);
}

void Prepared<QuantizedLinear>::run(int64_t n, Inputs inputs, void* output) const {
  if (!op_->product.output) return accumulate(n, inputs[0], static_cast<int32_t*>(output));
  kernels::gemm_u8s8_u8(
      n * op_->rows, op_->inputs, inputs[0], *packed_, params_, static_cast<uint8_t*>(output));
}

}  // namespace quantrain::integer
