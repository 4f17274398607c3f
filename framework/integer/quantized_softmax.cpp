#include "framework/integer/quantized_softmax.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/integer/quantized_product.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {
namespace {

constexpr int64_t kGrain = 1 << 12;  // elements of a block

}  // namespace

std::vector<int32_t> softmax_powers(float scale) {
  const DefaultRounding rounding;
  std::vector<int32_t> powers;
  for (size_t d = 0; d < QuantizedSoftmax::kPowers; ++d) {
    const double power = std::exp(-static_cast<double>(scale) * static_cast<double>(d));
    powers.push_back(static_cast<int32_t>(std::llround(power * QuantizedSoftmax::kOne)));
  }
  return powers;
}

QuantizedSoftmax QuantizedSoftmax::make(
    int64_t rows, int64_t classes, const QParams& x, const QParams& y, Activation activation) {
  check_activation(x, "softmax");
  const StoredOutput output = stored_output(y, activation);
  return {.rows = rows,
          .classes = classes,
          .powers = softmax_powers(x.scale[0]),
          .multiplier = rescale_multiplier(1.0f, y.scale[0]),
          .y = output};
}

void QuantizedSoftmax::validate(std::string_view where) const {
  check_size(where, {rows, classes});
  if (powers.size() != kPowers)
    throw ShapeError(where, "a table of ", powers.size(), " powers, expected ", kPowers);
  if (powers[0] != kOne) throw QuantError(where, "powers[0] is ", powers[0], ", expected ", kOne);
  for (const int32_t power : powers) {
    if (power < 0 || power > kOne)
      throw QuantError(where, "a power of ", power, ", expected 0 to ", kOne);
  }
  integer::validate(multiplier, where);
  integer::validate(y, where);
}

SoftmaxRow::SoftmaxRow(const std::vector<int32_t>& powers, const uint8_t* x, int64_t classes)
    : powers_(powers.data()), max_(*std::max_element(x, x + classes)) {
  for (int64_t i = 0; i < classes; ++i) sum_ += power(x[i]);
}

void Prepared<QuantizedSoftmax>::run(int64_t n, Inputs inputs, void* output) const {
  const QuantizedSoftmax& op = *op_;
  const int64_t grain = std::max<int64_t>(1, kGrain / op.classes);
  parallel_for(n * op.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const uint8_t* const x = inputs[0] + r * op.classes;
      uint8_t* const y = static_cast<uint8_t*>(output) + r * op.classes;
      const SoftmaxRow row(op.powers, x, op.classes);
      for (int64_t i = 0; i < op.classes; ++i) {
        const int64_t code = row.code(x[i], op.multiplier, op.y.zero_point);
        y[i] = static_cast<uint8_t>(std::clamp<int64_t>(code, op.y.lo, op.y.hi));
      }
    }
  });
}

}  // namespace quantrain::integer
