#pragma once

#include <limits>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/ops/functions.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y = max(x, 0).
class ReLU : public Module {
 public:
  static constexpr std::string_view kType = "ReLU";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  Tensor forward(const Tensor& x) final { return take_forward(x); }
  Tensor take_forward(Tensor x) override;
};

/// y = min(max(x, 0), 6).
class ReLU6 : public Module {
 public:
  static constexpr std::string_view kType = "ReLU6";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

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
  static constexpr std::string_view kType = "Softmax";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

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
  /// The function's attribute of this name.   Throws: GraphError if there is none.
  float number(std::string_view name) const;

 private:
  std::shared_ptr<const ElementwiseFunction> function_;
};

// One layer for each function in framework/autograd/ops/functions.hpp. That file has the formulas.
struct Sigmoid : Elementwise {
  static constexpr std::string_view kType = "Sigmoid";
  using Members = NoMembers;
  Sigmoid() : Elementwise(functions::sigmoid()) {}
};
struct Tanh : Elementwise {
  static constexpr std::string_view kType = "Tanh";
  using Members = NoMembers;
  Tanh() : Elementwise(functions::tanh()) {}
};
/// Throws: DataError if alpha or beta is not finite.
struct HardSigmoid : Elementwise {
  static constexpr std::string_view kType = "HardSigmoid";
  struct Members {
    float alpha = 0.0f;
    float beta = 0.0f;
    static void describe(auto& m, auto& member) {
      member.optional("alpha", m.alpha, 1.0f / 6.0f);
      member.optional("beta", m.beta, 0.5f);
    }
  };
  static HardSigmoid from(const Members& m) { return HardSigmoid(m.alpha, m.beta); }
  Members members() const { return {number("alpha"), number("beta")}; }
  HardSigmoid() : Elementwise(functions::hard_sigmoid()) {}
  HardSigmoid(float alpha, float beta) : Elementwise(functions::hard_sigmoid(alpha, beta)) {}
};
struct HardSwish : Elementwise {
  static constexpr std::string_view kType = "HardSwish";
  using Members = NoMembers;
  HardSwish() : Elementwise(functions::hard_swish()) {}
};
struct SiLU : Elementwise {
  static constexpr std::string_view kType = "SiLU";
  using Members = NoMembers;
  SiLU() : Elementwise(functions::silu()) {}
};
struct GELU : Elementwise {
  static constexpr std::string_view kType = "GELU";
  using Members = NoMembers;
  GELU() : Elementwise(functions::gelu()) {}
};
struct GELUTanh : Elementwise {
  static constexpr std::string_view kType = "GELUTanh";
  using Members = NoMembers;
  GELUTanh() : Elementwise(functions::gelu_tanh()) {}
};
struct Mish : Elementwise {
  static constexpr std::string_view kType = "Mish";
  using Members = NoMembers;
  Mish() : Elementwise(functions::mish()) {}
};
struct Softplus : Elementwise {
  static constexpr std::string_view kType = "Softplus";
  using Members = NoMembers;
  Softplus() : Elementwise(functions::softplus()) {}
};
struct Erf : Elementwise {
  static constexpr std::string_view kType = "Erf";
  using Members = NoMembers;
  Erf() : Elementwise(functions::erf()) {}
};
/// Throws: DataError if slope is not finite.
struct LeakyReLU : Elementwise {
  static constexpr std::string_view kType = "LeakyReLU";
  struct Members {
    float slope = 0.0f;
    static void describe(auto& m, auto& member) { member("slope", m.slope); }
  };
  static LeakyReLU from(const Members& m) { return LeakyReLU(m.slope); }
  Members members() const { return {number("alpha")}; }
  explicit LeakyReLU(float slope = 0.01f) : Elementwise(functions::leaky_relu(slope)) {}
};
/// Throws: DataError if alpha is not finite.
struct ELU : Elementwise {
  static constexpr std::string_view kType = "ELU";
  struct Members {
    float alpha = 0.0f;
    static void describe(auto& m, auto& member) { member("alpha", m.alpha); }
  };
  static ELU from(const Members& m) { return ELU(m.alpha); }
  Members members() const { return {number("alpha")}; }
  explicit ELU(float alpha = 1.0f) : Elementwise(functions::elu(alpha)) {}
};
struct SELU : Elementwise {
  static constexpr std::string_view kType = "SELU";
  using Members = NoMembers;
  SELU() : Elementwise(functions::selu()) {}
};
struct Exp : Elementwise {
  static constexpr std::string_view kType = "Exp";
  using Members = NoMembers;
  Exp() : Elementwise(functions::exp()) {}
};
struct Square : Elementwise {
  static constexpr std::string_view kType = "Square";
  using Members = NoMembers;
  Square() : Elementwise(functions::square()) {}
};
/// Throws: DataError unless the exponent is finite and not negative.
struct Power : Elementwise {
  static constexpr std::string_view kType = "Power";
  struct Members {
    float exponent = 0.0f;
    static void describe(auto& m, auto& member) { member("exponent", m.exponent); }
  };
  static Power from(const Members& m) { return Power(m.exponent); }
  Members members() const { return {number("exponent")}; }
  explicit Power(float exponent) : Elementwise(functions::power(exponent)) {}
};
struct Sqrt : Elementwise {
  static constexpr std::string_view kType = "Sqrt";
  using Members = NoMembers;
  Sqrt() : Elementwise(functions::sqrt()) {}
};
struct Logarithm : Elementwise {
  static constexpr std::string_view kType = "Logarithm";
  using Members = NoMembers;
  Logarithm() : Elementwise(functions::log()) {}
};
struct Abs : Elementwise {
  static constexpr std::string_view kType = "Abs";
  using Members = NoMembers;
  Abs() : Elementwise(functions::abs()) {}
};
/// Throws: DataError if no finite number lies between the bounds.
struct Clamp : Elementwise {
  static constexpr std::string_view kType = "Clamp";
  struct Members {
    float low = 0.0f;
    float high = 0.0f;
    static void describe(auto& m, auto& member) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      member.optional("low", m.low, -kInfinity);
      member.optional("high", m.high, kInfinity);
    }
  };
  static Clamp from(const Members& m) { return Clamp(m.low, m.high); }
  Members members() const { return {number("min"), number("max")}; }
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
  static constexpr std::string_view kType = "PReLU";
  struct Members {
    Tensor weight;
    static void describe(auto& m, auto& member) { member("weight", m.weight); }
  };
  static PReLU from(const Members& m) { return PReLU(m.weight); }
  Members members() const { return {weight_}; }
  std::string_view type() const override { return kType; }
  const Tensor& weight() const& { return weight_; }
  Tensor weight() const&& { return weight_; }

 protected:
  /// Throws: ShapeError if `channels` is not 1 and the last axis of x does not have that extent.
  Tensor forward(const Tensor& x) override;

 private:
  Tensor weight_;
};

}  // namespace quantrain
