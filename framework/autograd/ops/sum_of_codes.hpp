#pragma once

#include <memory>

#include "framework/autograd/value.hpp"

namespace quantrain {

/// a + b of two tensors of codes with the same elements, to be rounded once, when the output's
/// parameters are known.   docs/quantization.md (11)
class SumOfCodes : public Accumulators {
 public:
  SumOfCodes(std::shared_ptr<const Codes> a, std::shared_ptr<const Codes> b);

  void to_float(float* y) const override;
  void requantize(const QParams& y,
                  Activation activation,
                  uint8_t* codes,
                  uint8_t* mask) const override;

 private:
  std::shared_ptr<const Codes> a_;
  std::shared_ptr<const Codes> b_;
};

}  // namespace quantrain
