#pragma once

#include <memory>
#include <vector>

#include "framework/autograd/value.hpp"

namespace quantrain {

/// Codes of several tensors one after the other, each at parameters of its own until the output's
/// are known: rule 8 on x - zero_x, M = scale_x / scale_y for each.   docs/quantization.md (11)
class ConcatenatedCodes : public Accumulators {
 public:
  struct Part {
    std::shared_ptr<const Codes> codes;
    int64_t run;  ///< its elements in each of the `rows` rows of the result
  };
  ConcatenatedCodes(int64_t rows, std::vector<Part> parts);

  void to_float(float* y) const override;
  void requantize(const QParams& y,
                  Activation activation,
                  uint8_t* codes,
                  uint8_t* mask) const override;

 private:
  int64_t rows_;
  int64_t row_length_ = 0;
  std::vector<Part> parts_;
};

}  // namespace quantrain
