#pragma once

#include "layers/init.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y = x * weight^T + bias.
/// Shapes: x [..., in], weight [out, in], bias [out]  ->  y [..., out].
/// Parameters: "weight" and "bias", from init::layer_default.
class Linear : public Module {
 public:
  struct Options {
    bool bias = true;
  };

  /// Throws: ShapeError if a number of features is not positive.
  Linear(int64_t in_features, int64_t out_features)
      : Linear(in_features, out_features, Options{}) {}
  /// generator: the source of the initial values, as in all layers with parameters.
  Linear(int64_t in_features,
         int64_t out_features,
         Options options,
         Generator& generator = default_generator());
  /// Uses existing tensors, such as another layer's weight() and bias(). Quantization refuses a
  /// layer that runs twice in a pass: make two layers that share their parameters.
  /// Throws: ShapeError unless weight is [out, in] and bias [out] or undefined.
  explicit Linear(Tensor weight, Tensor bias = Tensor());

  std::string_view type() const override { return "Linear"; }
  bool has_weight_slot() const override { return true; }
  const Tensor& weight() const& { return weight_; }
  Tensor weight() const&& { return weight_; }
  /// Undefined without bias.
  const Tensor& bias() const& { return bias_; }
  Tensor bias() const&& { return bias_; }

 protected:
  /// Throws: ShapeError if the last axis of x is not in_features.
  Tensor forward(const Tensor& x) override;

 private:
  Tensor weight_;
  Tensor bias_;
};

}  // namespace quantrain
