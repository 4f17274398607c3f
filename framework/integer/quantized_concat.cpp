#include "framework/integer/quantized_concat.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/quantized_product.hpp"
#include "framework/integer/sizes.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

QuantizedConcat QuantizedConcat::make(int64_t rows,
                                      const std::vector<int64_t>& runs,
                                      const std::vector<QParams>& x,
                                      const QParams& y,
                                      Activation activation) {
  if (runs.size() != x.size())
    throw ShapeError("concat", runs.size(), " lengths for ", x.size(), " operands");
  for (const QParams& params : x) check_activation(params, "concat");
  QuantizedConcat result{.rows = rows, .parts = {}, .y = stored_output(y, activation)};
  for (size_t i = 0; i < runs.size(); ++i) {
    result.parts.push_back(
        {runs[i], stored_zero_point(x[i]), rescale_multiplier(x[i].scale[0], y.scale[0])});
  }
  return result;
}

int64_t QuantizedConcat::row_length() const {
  int64_t length = 0;
  for (const Part& part : parts) length += part.run;
  return length;
}

std::vector<int64_t> QuantizedConcat::input_sizes() const {
  std::vector<int64_t> sizes;
  for (const Part& part : parts) sizes.push_back(rows * part.run);
  return sizes;
}

Channels QuantizedConcat::output_channels(InputChannels inputs) const {
  Channels result;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& part = parts[i];
    for (const Interval& x : over(*inputs[i], part.run)) {
      result.push_back(through(x, [&](int64_t q) {
        return requantize(
            static_cast<int32_t>(q) - part.zero_x, part.multiplier, y.zero_point, y.lo, y.hi);
      }));
    }
  }
  return result;
}

void QuantizedConcat::validate(std::string_view where) const {
  if (parts.empty()) throw ShapeError(where, "a concatenation needs at least one operand");
  int64_t length = 0;
  for (const Part& part : parts) {
    check_size(where, {rows, part.run});
    check_size(where, {rows, length += part.run});
    validate_zero_point(part.zero_x, where);
    integer::validate(part.multiplier, where);
  }
  integer::validate(y, where);
}

Prepared<QuantizedConcat>::Prepared(const QuantizedConcat& op) : op_(&op) {
  for (const QuantizedConcat::Part& part : op.parts)
    tables_.push_back(rescale_table(part.zero_x, part.multiplier, op.y));
}

void Prepared<QuantizedConcat>::run(int64_t n, Inputs inputs, void* output) const {
  auto* column = static_cast<uint8_t*>(output);
  const int64_t length = op_->row_length();
  for (size_t i = 0; i < tables_.size(); ++i) {
    const int64_t run = op_->parts[i].run;
    kernels::lookup_rows_u8(n * op_->rows, run, inputs[i], tables_[i].data(), column, length);
    column += run;
  }
}

}  // namespace quantrain::integer
