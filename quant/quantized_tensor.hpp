#pragma once

#include <memory>

#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// A tensor stored as integer codes q of 1 to 8 bits: real = scale * (q - zero_point). Scale and
/// zero point belong to the whole tensor, or to each index along one axis.
/// docs/quantization.md (1) to (3)
class QuantizedTensor {
 public:
  // Copies share the codes. There is no move: a moved-from tensor would have no codes.
  QuantizedTensor(const QuantizedTensor&) = default;
  QuantizedTensor& operator=(const QuantizedTensor&) = default;
  /// Quantizes x [...] with these parameters; params.axis counts from 0.
  /// Throws: QuantError if the parameters are invalid or have more than 8 bits; ShapeError if x has
  /// no such axis or a different number of channels; DataError if x holds a NaN or an infinity.
  QuantizedTensor(const Tensor& x, const QParams& params);
  /// The same with parameters chosen from the smallest and largest value of x: for each index along
  /// `axis`, or for the whole tensor if axis < 0.
  QuantizedTensor(const Tensor& x, const QType& type, QScheme scheme, int axis = -1);

  const Shape& shape() const& { return shape_; }
  Shape shape() const&& { return shape_; }
  const QParams& params() const& { return codes_->params; }
  QParams params() const&& { return codes_->params; }
  /// Signed codes are stored as CodeStorage::kS8, unsigned codes as kU8.
  const std::shared_ptr<const Codes>& codes() const& { return codes_; }
  std::shared_ptr<const Codes> codes() const&& { return codes_; }
  /// The code at row-major index i. Throws: ShapeError if there is no such element.
  int32_t code(int64_t i) const;

  /// The codes' real values, shaped like the original.
  Tensor dequantize() const;
  /// A tensor that holds the codes.
  Tensor tensor() const { return Tensor::from_codes(shape_, codes_); }

  /// Mean of (x - dequantize())^2, in double; 0 for an empty tensor.
  /// Throws: ShapeError unless x has this tensor's shape.
  double quantization_error(const Tensor& x) const;
  /// Bytes of the codes, packed bit by bit without gaps.
  int64_t packed_bytes() const;
  /// Bytes of the parameters: a float32 scale and a one-byte zero point for each channel.
  int64_t parameter_bytes() const;
  /// Size as float32, divided by packed_bytes() + parameter_bytes().
  double compression_ratio() const;

 private:
  Shape shape_;
  std::shared_ptr<const Codes> codes_;
};

}  // namespace quantrain::quant
