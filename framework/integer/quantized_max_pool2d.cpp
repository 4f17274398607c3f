#include "framework/integer/quantized_max_pool2d.hpp"

#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

void Prepared<QuantizedMaxPool2d>::run(int64_t n,
                                       Inputs inputs,
                                       void* output,
                                       uint16_t* position) const {
  kernels::max_pool2d_u8(
      with_batch(op_->shape, n), inputs[0], static_cast<uint8_t*>(output), position);
}

}  // namespace quantrain::integer
