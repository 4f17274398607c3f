#pragma once

#include "framework/kernels/integer.hpp"
#include "quant/integer/requantized_layer.hpp"

namespace quantrain::quant {

/// Integer weights of a linear or convolution with what they mean.
struct QuantizedWeights {
  std::vector<int8_t> codes;  ///< [O, ...]
  std::vector<float> scale;   ///< [O], or one for all
  std::vector<int32_t>
      bias;  ///< [O], at scale_x * scale_w; empty: none.   docs/quantization.md (6)
  int bits = 8;
};

/// What QuantizedLinear and QuantizedConv2d share: sums of products, then either the int32
/// accumulators or codes. acc = sum(w * (x - zero_x)) + bias;  y = rule 8 of acc.
/// docs/quantization.md (6) to (9)
class QuantizedProduct : public RequantizedLayer {
 public:
  OutputKind output_kind() const override {
    return has_output_params() ? OutputKind::kCodes : OutputKind::kAccumulators;
  }
  double accumulator_scale() const override;

  const QParams& input_params() const { return x_; }
  const QuantizedWeights& weights() const { return weights_; }
  /// Largest accumulator_bound of a channel.
  int64_t accumulator_bound() const { return bound_; }
  std::vector<LayerTensor> tensors() const override;

 protected:
  void set_output_scale(float scale_y) override;
  void output_is_set() override;
  /// Throws: ShapeError if the numbers of codes, scales or biases do not fit [outputs, length];
  /// QuantError naming the channel if an accumulator could overflow, or a scale is not positive
  /// and finite.
  QuantizedProduct(
      std::string name, int64_t outputs, int64_t length, QParams x, QuantizedWeights weights);

  Attributes product_attributes() const;
  void load_product_output(const Attributes& attributes);
  const kernels::PackedWeightsS8& packed() const { return packed_; }
  const kernels::ProductParams& product_params() const { return params_; }
  /// To be called once, by the constructor of a derived class.
  void set_packed(kernels::PackedWeightsS8 packed);

 private:
  const int32_t* bias() const { return weights_.bias.empty() ? nullptr : weights_.bias.data(); }

  int64_t outputs_;
  QParams x_;
  QuantizedWeights weights_;
  std::vector<int32_t> m0_;
  std::vector<int32_t> shift_;
  int64_t bound_ = 0;
  kernels::PackedWeightsS8 packed_;
  kernels::ProductParams params_;
};

}  // namespace quantrain::quant
