#pragma once

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/ops/functions.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y = max(x, 0).
class ReLU : public Module {
 public:
  std::string_view type() const override { return "ReLU"; }

 protected:
  Tensor forward(const Tensor& x) final { return take_forward(x); }
  Tensor take_forward(Tensor x) override;
};

/// y = min(max(x, 0), 6).
class ReLU6 : public Module {
 public:
  std::string_view type() const override { return "ReLU6"; }

 protected:
  Tensor forward(const Tensor& x) final { return take_forward(x); }
  Tensor take_forward(Tensor x) override;
};

/// That of a ReLU or ReLU6; kNone for other layers, and for classes that derive from these two.
Activation activation_of(const Module& layer);

/// y[..., c] = exp(x[..., c]) / sum over k of exp(x[..., k]), along the last axis. In a network
/// prepared for quantization, the quantization range of y is always [0, 1]. A classifier rarely
/// needs a Softmax. Losses such as cross_entropy take logits, and a deployed network can pick the
/// largest logit, which also has the largest probability.
/// Shapes: x [N, ..., C]  ->  y like x.
/// Gradient: grad_x = y * (grad_y - s), where s is the sum of grad_y * y over the last axis.
/// Source: ONNX Softmax, axis -1.
class Softmax : public Module {
 public:
  std::string_view type() const override { return "Softmax"; }

 protected:
  /// Throws: ShapeError if x is a scalar.
  Tensor forward(const Tensor& x) override;
};

/// y = f(x), element by element, for any function f. To write your own function, see
/// docs/adding_an_operation.md.
class Elementwise : public Module {
 public:
  /// Throws: GraphError if the function is null.
  explicit Elementwise(std::shared_ptr<const ElementwiseFunction> function);
  /// The function's layer name, or "Elementwise" if it has none.
  std::string_view type() const override;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  std::shared_ptr<const ElementwiseFunction> function_;
};

// One layer for each function in framework/autograd/ops/functions.hpp. That file has the formulas.
struct Sigmoid : Elementwise {
  Sigmoid() : Elementwise(functions::sigmoid()) {}
};
struct Tanh : Elementwise {
  Tanh() : Elementwise(functions::tanh()) {}
};
struct HardSigmoid : Elementwise {
  HardSigmoid() : Elementwise(functions::hard_sigmoid()) {}
};
struct HardSwish : Elementwise {
  HardSwish() : Elementwise(functions::hard_swish()) {}
};
struct SiLU : Elementwise {
  SiLU() : Elementwise(functions::silu()) {}
};
struct GELU : Elementwise {
  GELU() : Elementwise(functions::gelu()) {}
};
/// Throws: DataError if slope is not finite.
struct LeakyReLU : Elementwise {
  explicit LeakyReLU(float slope = 0.01f) : Elementwise(functions::leaky_relu(slope)) {}
};
/// Throws: DataError if alpha is not finite.
struct ELU : Elementwise {
  explicit ELU(float alpha = 1.0f) : Elementwise(functions::elu(alpha)) {}
};
struct Exp : Elementwise {
  Exp() : Elementwise(functions::exp()) {}
};
struct Square : Elementwise {
  Square() : Elementwise(functions::square()) {}
};
struct Abs : Elementwise {
  Abs() : Elementwise(functions::abs()) {}
};
/// Throws: DataError if no finite number lies between the bounds.
struct Clamp : Elementwise {
  Clamp(float low, float high) : Elementwise(functions::clamp(low, high)) {}
};

/// y = x where x > 0, else slope * x, with a learned slope for each channel.
/// Shapes: x [..., channels]  ->  y like x. If channels is 1, x may have any shape, and all
/// elements share the slope.
/// Parameters: "weight" [channels], the slopes.
/// Source: He et al. 2015.
class PReLU : public Module {
 public:
  /// slope: the initial slope of all channels.
  /// Throws: ShapeError if channels is not positive; DataError if slope is not finite.
  explicit PReLU(int64_t channels, float slope = 0.25f);
  /// Uses existing slopes, such as another layer's weight().
  /// Throws: ShapeError unless they are [channels].
  explicit PReLU(Tensor weight);
  std::string_view type() const override { return "PReLU"; }
  const Tensor& weight() const& { return weight_; }
  Tensor weight() const&& { return weight_; }

 protected:
  /// Throws: ShapeError if `channels` is not 1 and the last axis of x does not have that extent.
  Tensor forward(const Tensor& x) override;

 private:
  Tensor weight_;
};

}  // namespace quantrain
