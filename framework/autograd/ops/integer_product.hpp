#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/buffer.hpp"

namespace quantrain {

/// Checked operands of an exact integer product u8 x s8 -> s32.   docs/quantization.md (6), (7)
struct IntegerProduct {
  std::shared_ptr<const Codes> x;
  integer::QuantizedProduct product;  ///< shares the weight's codes; its `output` is not set
  std::vector<double> scale;          ///< scale_x * scale_w[o], one for each output channel
};

/// The operands, if x holds activation codes and weight [O, ...] holds signed codes with zero
/// points of 0, per tensor or per output channel. Otherwise empty: the operation then computes
/// with floats. `reduction` is the number of products in one sum.
/// Throws: QuantError naming the operation if a sum or a quantized bias could exceed 32 bits.
std::optional<IntegerProduct> integer_product(std::string_view operation,
                                              const Tensor& x,
                                              const Tensor& weight,
                                              const Tensor& bias,
                                              int64_t reduction);

/// Exact sums of a linear or convolution over codes: real[i, c] = scale[c] * values[i, c]. The sums
/// include the quantized bias.   docs/quantization.md (7), (8)
class ProductAccumulators : public WaitingResult {
 public:
  /// operation: a QuantizedLinear or QuantizedConv2d whose product.output is not set.
  /// values [rows, channels]: the sums that it has accumulated.
  ProductAccumulators(integer::Operation operation,
                      std::vector<double> scale,
                      Buffer<int32_t> values);

  void to_float(float* y) const override;
  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override;
  void activation_mask(int64_t n, Activation activation, uint8_t* mask) const override;
  Range range(int64_t n, Activation activation) const override;
  std::optional<Sums> sums() const override { return Sums{values_.data(), scale_, operation_}; }
  Buffer<int32_t> take_sums() override { return std::move(values_); }

 private:
  int64_t channels() const { return static_cast<int64_t>(scale_.size()); }
  int64_t rows() const { return scale_.empty() ? 0 : values_.size() / channels(); }

  std::shared_ptr<const integer::Operation> operation_;
  std::vector<double> scale_;
  Buffer<int32_t> values_;
};

/// Runs the operation on n samples. Returns the sums as a tensor of shape y.
template <class Operation>
Tensor accumulate(Operation operation, IntegerProduct product, int64_t n, const Shape& y) {
  operation.product = std::move(product.product);
  Buffer<int32_t> sums(y.elements());
  integer::Prepared<Operation>(operation).accumulate(n, product.x->u8(), sums.data());
  return TensorAccess::from_waiting(
      y,
      std::make_shared<ProductAccumulators>(
          std::move(operation), std::move(product.scale), std::move(sums)));
}

}  // namespace quantrain
