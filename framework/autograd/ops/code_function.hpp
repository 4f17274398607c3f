#pragma once

#include <string>
#include <vector>

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/integer/quantized_lookup.hpp"

namespace quantrain {

/// A function of codes, either one function for all channels or one for each channel. It becomes a
/// lookup table when the parameters of its output are known.   docs/quantization.md (18)
class CodeFunction : public WaitingResult {
 public:
  /// where: the operation's name in messages. x has shape [..., C]. values: tables of the
  /// function's value for each code; one table for all channels, or C tables.
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

/// Whether one of the operands has the shape of a constant: one number, or one for each channel.
/// Numbers for channels have shape [C] or [1, ..., C] if the other operand is [..., C].
bool may_be_constant(const Shape& a, const Shape& b);
/// f(a, b), if one operand holds activation codes and the other holds floats in the shape of a
/// constant. The result is a CodeFunction with a table for each number of the constant. Returns an
/// undefined tensor for all other operands.   docs/quantization.md (24)
/// where: the operation's name in messages.
Tensor function_of_constants(std::string where,
                             const Tensor& a,
                             const Tensor& b,
                             double (*f)(double a, double b));

/// The values, each rounded once to float32.
std::array<float, 256> to_floats(const integer::CodeValues& values);

}  // namespace quantrain
