#pragma once

#include "framework/kernels/integer.hpp"
#include "quant/integer/requantized_layer.hpp"

namespace quantrain::quant {

/// Largest code of each window; passes the parameters through.   docs/quantization.md (10)
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C].
/// Source: ONNX MaxPool.
class QuantizedMaxPool2d : public IntegerLayer {
 public:
  struct Spec {
    kernels::Conv2dShape shape;  ///< c = o; n and groups are not used
    QParams x;
  };
  /// Throws: ShapeError if the window does not fit; QuantError if x are not parameters of
  /// activations.
  QuantizedMaxPool2d(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_max_pool2d"; }
  std::string_view kernel() const override { return "max_pool2d_u8"; }
  std::vector<Shape> input_shapes() const override { return {Shape{shape_.h, shape_.w, shape_.c}}; }
  Shape output_shape() const override { return {shape_.oh(), shape_.ow(), shape_.c}; }
  QParams output_params() const override { return x_; }
  /// Throws: QuantError; a max pool has no parameters of its own.
  void requantize_to(const QParams& y, Activation activation) override;
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;

 private:
  kernels::Conv2dShape shape_;
  QParams x_;
};

/// Mean of each window over the elements inside the image: rule 8 on sum(x - zero_x) with M =
/// scale_x / (n * scale_y). docs/quantization.md (10)
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C].
/// Source: ONNX AveragePool, count_include_pad = 0.
class QuantizedAvgPool2d : public RequantizedLayer {
 public:
  using Spec = QuantizedMaxPool2d::Spec;
  /// Throws: as QuantizedMaxPool2d; QuantError if the sum over a window could overflow 32 bits.
  QuantizedAvgPool2d(const std::string& name, Spec spec);
  static std::unique_ptr<IntegerLayer> load(const std::string& name,
                                            const Attributes& attributes,
                                            std::vector<LayerTensor> tensors);

  std::string_view type() const override { return "quantized_avg_pool2d"; }
  std::string_view kernel() const override { return "avg_pool2d_u8"; }
  std::vector<Shape> input_shapes() const override { return {Shape{shape_.h, shape_.w, shape_.c}}; }
  Shape output_shape() const override { return {shape_.oh(), shape_.ow(), shape_.c}; }
  void run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const override;
  Attributes attributes() const override;

 protected:
  void set_output_scale(float scale_y) override;

 private:
  kernels::Conv2dShape shape_;
  QParams x_;
  std::vector<Multiplier> multipliers_;  // for each number of elements inside the image
};

}  // namespace quantrain::quant
