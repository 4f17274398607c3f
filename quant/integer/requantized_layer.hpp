#pragma once

#include <optional>

#include "quant/integer/integer_layer.hpp"

namespace quantrain::quant {

/// What the layers share that bring their result to parameters of its own, behind an activation
/// that is fused with them.   docs/quantization.md (8), (9)
class RequantizedLayer : public IntegerLayer {
 public:
  using IntegerLayer::IntegerLayer;

  QParams output_params() const override;
  void requantize_to(const QParams& y, Activation activation) final;
  Activation activation() const { return activation_; }

 protected:
  /// Makes the multipliers that lead to an output of this scale.
  /// Throws: QuantError if one makes no sense. Then nothing has changed.
  virtual void set_output_scale(float scale_y) = 0;
  /// Called once the output has its parameters.
  virtual void output_is_set() {}

  bool has_output_params() const { return y_.has_value(); }
  /// Of the output, in stored bytes.
  int32_t output_zero_point() const { return stored_zero_point(*y_); }
  CodeClamp output_clamp() const { return stored_clamp(*y_, activation_); }

  /// The activation, and the parameters as far as there are any.
  void append_output(Attributes& attributes) const;
  /// requantize_to() what append_output() wrote.
  void load_output(const Attributes& attributes);

 private:
  std::optional<QParams> y_;
  Activation activation_ = Activation::kNone;
};

}  // namespace quantrain::quant
