#pragma once

#include <string>
#include <vector>

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/integer/quantized_lookup.hpp"

namespace quantrain {

/// A function of each code, which may be another one for each channel: a lookup that waits for the
/// parameters of its output.   docs/quantization.md (18)
class CodeFunction : public Accumulators {
 public:
  /// where: the operation, in messages. values: of each code of x [..., C]; one for all channels,
  /// or C of them.
  CodeFunction(std::string where,
               const Shape& shape,
               std::shared_ptr<const Codes> x,
               std::vector<integer::CodeValues> values);

  void to_float(float* y) const override;
  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override;

 private:
  std::string where_;
  Samples samples_;
  std::shared_ptr<const Codes> x_;
  std::vector<integer::CodeValues> values_;
};

/// Whether one operand may be a constant of a function of the other's codes: one number, or one for
/// each channel, [C] or [1, ..., C] beside [..., C].
bool may_be_constant(const Shape& a, const Shape& b);
/// f(a, b) where one operand holds an activation's codes, and the other is floats that
/// may_be_constant(): a table for each of its numbers, which waits for its parameters. Else
/// undefined.   docs/quantization.md (24)
/// where: the operation, in messages.
Tensor function_of_constants(std::string where,
                             const Tensor& a,
                             const Tensor& b,
                             double (*f)(double a, double b));

/// As they are in float operations: rounded to float32 once.
std::array<float, 256> to_floats(const integer::CodeValues& values);

}  // namespace quantrain
