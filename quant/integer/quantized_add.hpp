#pragma once

#include "framework/arithmetic/fixed_point.hpp"
#include "quant/integer/requantized_layer.hpp"

namespace quantrain::quant {

/// y = a + b at parameters of its own: one common shift, one rounding.   docs/quantization.md (11)
/// Shapes: a, b, y all alike.
/// Source: ONNX Add on quantized operands.
class QuantizedAdd : public RequantizedLayer {
 public:
  struct Spec {
    Shape shape;  ///< of one sample
    QParams a;
    QParams b;
  };
  /// Throws: QuantError if a or b are not parameters of activations.
  QuantizedAdd(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_add"; }
  std::string_view kernel() const override { return "add_u8"; }
  std::vector<Shape> input_shapes() const override { return {shape_, shape_}; }
  Shape output_shape() const override { return shape_; }
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;

 protected:
  void set_output_scale(float scale_y) override;

 private:
  Shape shape_;
  QParams a_, b_;
  AddMultipliers multipliers_;
};

}  // namespace quantrain::quant
