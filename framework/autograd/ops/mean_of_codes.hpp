#pragma once

#include <memory>

#include "framework/autograd/value.hpp"
#include "framework/kernels/conv_shape.hpp"

namespace quantrain {

/// Average pool of codes, to be rounded once, when the output's parameters are known: rule 8 on
/// sum(x - zero_x) over the elements inside the image, M = scale_x / (number of these * scale_y).
/// docs/quantization.md (10)
class MeanOfCodes : public Accumulators {
 public:
  MeanOfCodes(const kernels::Conv2dShape& shape, std::shared_ptr<const Codes> x);

  void to_float(float* y) const override;
  void requantize(const QParams& y,
                  Activation activation,
                  uint8_t* codes,
                  uint8_t* mask) const override;

 private:
  Buffer<int32_t> sums() const;
  /// Number of elements inside the image, for each of the OH * OW windows.
  std::vector<int64_t> counts() const;

  kernels::Conv2dShape shape_;
  std::shared_ptr<const Codes> x_;
};

}  // namespace quantrain
