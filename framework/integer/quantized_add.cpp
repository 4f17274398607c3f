#include "framework/integer/quantized_add.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/quantized_product.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

QuantizedAdd QuantizedAdd::make(int64_t size,
                                const std::vector<QParams>& x,
                                const QParams& y,
                                Activation activation) {
  std::vector<float> scales;
  for (const QParams& params : x) {
    check_activation(params, "add");
    scales.push_back(params.scale[0]);
  }
  const StoredOutput output = stored_output(y, activation);
  const AddMultipliers multipliers = add_multipliers(scales, y.scale[0]);
  QuantizedAdd result{.size = size, .operands = {}, .shift = multipliers.shift, .y = output};
  for (size_t i = 0; i < x.size(); ++i)
    result.operands.push_back({stored_zero_point(x[i]), multipliers.m[i]});
  return result;
}

Channels QuantizedAdd::output_channels(InputChannels inputs) const {
  size_t count = 0;
  for (const Channels* x : inputs) count = std::max(count, x->size());
  // The sums of the lowest and of the highest codes, before the shift.
  // docs/quantization.md (11)
  Channels sums(count, Interval{0, 0});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Channels x = over(*inputs[i], static_cast<int64_t>(count));
    const Operand& operand = operands[i];
    for (size_t c = 0; c < count; ++c) {
      sums[c].lo += (x[c].lo - operand.zero_x) * operand.m;
      sums[c].hi += (x[c].hi - operand.zero_x) * operand.m;
    }
  }
  const auto code = [&](int64_t sum) {
    return std::clamp<int64_t>(rounding_shift(sum, shift) + y.zero_point, y.lo, y.hi);
  };
  Channels result;
  for (const Interval& sum : sums) result.push_back({code(sum.lo), code(sum.hi)});
  return result;
}

void QuantizedAdd::validate(std::string_view where) const {
  check_size(where, {size});
  if (operands.empty() || operands.size() > kMostOperands) {
    throw ShapeError(
        where, "an addition has 1 to ", kMostOperands, " operands, got ", operands.size());
  }
  for (const Operand& operand : operands) {
    validate_zero_point(operand.zero_x, where);
    if (operand.m < 0 || shift < 1 || shift > 62) {
      throw QuantError(where,
                       "multipliers must not be negative and the shift must be 1 to 62 "
                       "(docs/quantization.md (11)): multiplier ",
                       operand.m,
                       ", shift ",
                       shift);
    }
  }
  integer::validate(y, where);
}

Prepared<QuantizedAdd>::Prepared(const QuantizedAdd& op) : size_(op.size) {
  for (const QuantizedAdd::Operand& operand : op.operands) {
    params_.zero_x.push_back(operand.zero_x);
    params_.multipliers.m.push_back(operand.m);
  }
  params_.multipliers.shift = op.shift;
  params_.y = op.y;
}

void Prepared<QuantizedAdd>::run(int64_t n,
                                 Inputs inputs,
                                 void* output,
                                 const GradientMask& mask) const {
  kernels::add_u8(n * size_, inputs.data(), params_, static_cast<uint8_t*>(output), mask);
}

}  // namespace quantrain::integer
