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

/// As they are in float operations: rounded to float32 once.
std::array<float, 256> to_floats(const integer::CodeValues& values);

}  // namespace quantrain
