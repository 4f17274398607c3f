#pragma once

#include "framework/arithmetic/fixed_point.hpp"
#include "quant/integer/requantized_layer.hpp"

namespace quantrain::quant {

/// Operands one after the other along an axis, each rescaled to the output's parameters by rule 8.
/// docs/quantization.md (11)
/// Shapes: x_i alike but for `axis`  ->  y with the sum of their extents there.
/// Source: ONNX Concat.
class QuantizedConcat : public RequantizedLayer {
 public:
  struct Spec {
    std::vector<Shape> inputs;  ///< of one sample
    int axis = 0;               ///< of one sample
    std::vector<QParams> x;     ///< of each input
  };
  /// Throws: ShapeError if there are no inputs or their extents differ elsewhere than along the
  /// axis; QuantError if x are not parameters of activations.
  QuantizedConcat(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_concat"; }
  std::string_view kernel() const override { return "rescale_u8"; }
  std::vector<Shape> input_shapes() const override { return inputs_; }
  Shape output_shape() const override { return output_; }
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;

 protected:
  void set_output_scale(float scale_y) override;

 private:
  std::vector<Shape> inputs_;
  Shape output_;
  int axis_;
  std::vector<QParams> x_;
  std::vector<Multiplier> multipliers_;
};

}  // namespace quantrain::quant
