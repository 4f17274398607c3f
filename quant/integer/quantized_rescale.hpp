#pragma once

#include "framework/arithmetic/fixed_point.hpp"
#include "quant/integer/requantized_layer.hpp"

namespace quantrain::quant {

/// The same real values at other parameters, by rule 8 with M = scale_x / scale_y, behind an
/// optional activation: a ReLU that stands alone, or an operand that another layer needs elsewhere
/// on the scale.   docs/quantization.md (8), (9)
/// Shapes: y like x.
/// Source: ONNX DequantizeLinear followed by QuantizeLinear.
class QuantizedRescale : public RequantizedLayer {
 public:
  struct Spec {
    Shape shape;  ///< of one sample
    QParams x;
  };
  /// Throws: QuantError if x are not parameters of activations.
  QuantizedRescale(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_rescale"; }
  std::string_view kernel() const override { return "rescale_u8"; }
  std::vector<Shape> input_shapes() const override { return {shape_}; }
  Shape output_shape() const override { return shape_; }
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;

 protected:
  void set_output_scale(float scale_y) override;

 private:
  Shape shape_;
  QParams x_;
  Multiplier multiplier_;
};

/// The same bytes under another shape.
/// Shapes: x [N, ...]  ->  y [N, elements].
/// Source: ONNX Flatten, Reshape.
class QuantizedFlatten : public IntegerLayer {
 public:
  struct Spec {
    Shape input;   ///< of one sample
    Shape output;  ///< of one sample
    QParams x;
  };
  /// Throws: ShapeError if the numbers of elements differ; QuantError if x are not parameters of
  /// activations.
  QuantizedFlatten(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_flatten"; }
  std::string_view kernel() const override { return "none"; }
  std::vector<Shape> input_shapes() const override { return {input_}; }
  Shape output_shape() const override { return output_; }
  QParams output_params() const override { return x_; }
  /// Throws: QuantError; a flatten has no parameters of its own.
  void requantize_to(const QParams& y, Activation activation) override;
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  bool is_view() const override { return true; }
  Attributes attributes() const override;

 private:
  Shape input_, output_;
  QParams x_;
};

}  // namespace quantrain::quant
