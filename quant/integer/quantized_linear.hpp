#pragma once

#include "quant/integer/quantized_product.hpp"

namespace quantrain::quant {

/// acc[..., o] = sum over i of w[o, i] * (x[..., i] - zero_x) + bias[o]; y = rule 8 of acc.
/// docs/quantization.md (7), (8)
/// Shapes: x [N, rows, in], w [out, in]  ->  y [N, rows, out]; rows = 1 unless a sample has leading
/// axes.
/// Source: ONNX MatMulInteger, with TFLite's fused requantization.
class QuantizedLinear : public QuantizedProduct {
 public:
  struct Spec {
    Shape input;  ///< of one sample, [..., in]
    int64_t outputs = 1;
    QuantizedWeights weights;
    QParams x;
  };
  /// Throws: as QuantizedProduct.
  QuantizedLinear(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_linear"; }
  std::string_view kernel() const override;
  std::vector<Shape> input_shapes() const override { return {input_}; }
  Shape output_shape() const override;
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;

 private:
  Shape input_;
  int64_t outputs_;
};

}  // namespace quantrain::quant
