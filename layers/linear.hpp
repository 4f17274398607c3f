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

  /// Throws: ShapeError if in_features or out_features is not positive.
  Linear(int64_t in_features, int64_t out_features)
      : Linear(in_features, out_features, Options{}) {}
  /// generator: the source of the initial values.
  Linear(int64_t in_features,
         int64_t out_features,
         Options options,
         Generator& generator = default_generator());
  /// Uses existing tensors, such as another layer's weight() and bias(). If a network uses the
  /// same parameters twice in a pass, make two layers that share them, because quantization refuses
  /// a layer that runs twice.
  /// Throws: ShapeError if weight is not [out, in], or if bias is defined and not [out].
  explicit Linear(Tensor weight, Tensor bias = Tensor());

  static constexpr std::string_view kType = "Linear";
  struct Members {
    Tensor weight, bias;
    static void describe(auto& m, auto& member) {
      member("weight", m.weight);
      member("bias", m.bias);
    }
  };
  static Linear from(const Members& m) { return Linear(m.weight, m.bias); }
  Members members() const { return {weight_, bias_}; }
  std::string_view type() const override { return kType; }
  bool has_weight_slot() const override { return true; }
  const Tensor& weight() const& { return weight_; }
  Tensor weight() const&& { return weight_; }
  /// Undefined if the layer has no bias.
  const Tensor& bias() const& { return bias_; }
  Tensor bias() const&& { return bias_; }

 protected:
  /// Throws: ShapeError if the last axis of x does not have in_features elements.
  Tensor forward(const Tensor& x) override;

 private:
  Tensor weight_;
  Tensor bias_;
};

}  // namespace quantrain
