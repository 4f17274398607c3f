#pragma once

#include "quant/integer/quantized_product.hpp"

namespace quantrain::quant {

/// acc = sum over the window of w * (x - zero_x) + bias; y = rule 8 of acc. Outside of the image x
/// is zero_x. docs/quantization.md (7), (8)
/// Shapes: x [N, H, W, C], w [O, KH, KW, C / groups]  -> y [N, OH, OW, O].
/// Source: ONNX ConvInteger, with TFLite's fused requantization.
class QuantizedConv2d : public QuantizedProduct {
 public:
  struct Spec {
    kernels::Conv2dShape shape;  ///< n is not used
    QuantizedWeights weights;
    QParams x;
  };
  /// Throws: as QuantizedProduct; ShapeError if the window does not fit the padded image.
  QuantizedConv2d(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_conv2d"; }
  std::string_view kernel() const override;
  std::vector<Shape> input_shapes() const override { return {Shape{shape_.h, shape_.w, shape_.c}}; }
  Shape output_shape() const override { return {shape_.oh(), shape_.ow(), shape_.o}; }
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;
  const kernels::Conv2dShape& shape() const { return shape_; }

 private:
  kernels::Conv2dShape shape_;
};

}  // namespace quantrain::quant
