#pragma once

#include <utility>
#include <vector>

#include "framework/arithmetic/activation.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, per channel. In evaluation, mean and
/// variance are the running statistics. In training, they are the mean and the population
/// variance of each channel's n values in the batch. Training also updates the running statistics:
/// running = (1 - momentum) * running + momentum * batch. The running variance is updated with the
/// batch's unbiased variance, which is n / (n - 1) times the population variance.
/// Shapes: x [N, C] or [N, L, C] (BatchNorm1d), or [N, H, W, C] (BatchNorm2d); parameters and
/// buffers [C]  ->  y like x.
/// Parameters: "weight" (gamma, initially 1), "bias" (beta, initially 0).
/// Buffers: "running_mean" (initially 0), "running_var" (initially 1).
/// Source: Ioffe and Szegedy 2015.
class BatchNorm : public Module {
 public:
  struct Options {
    float epsilon = 1e-5f;  ///< added to the variance; positive and finite
    float momentum = 0.1f;  ///< weight of the batch in the running statistics, 0 to 1
  };
  struct Members {
    Options options;
    Tensor gamma, beta, running_mean, running_var;
    static void describe(auto& m, auto& member) {
      member("epsilon", m.options.epsilon);
      member("momentum", m.options.momentum);
      member("weight", m.gamma);
      member("bias", m.beta);
      member("running_mean", m.running_mean);
      member("running_var", m.running_var);
    }
  };
  Members members() const { return {options_, gamma_, beta_, running_mean_, running_var_}; }

  const Tensor& gamma() const& { return gamma_; }
  Tensor gamma() const&& { return gamma_; }
  const Tensor& beta() const& { return beta_; }
  Tensor beta() const&& { return beta_; }
  const Tensor& running_mean() const& { return running_mean_; }
  Tensor running_mean() const&& { return running_mean_; }
  const Tensor& running_var() const& { return running_var_; }
  Tensor running_var() const&& { return running_var_; }
  float epsilon() const { return options_.epsilon; }
  float momentum() const { return options_.momentum; }
  const Options& options() const& { return options_; }
  Options options() const&& { return options_; }

  /// Fuses an activation, except in a recording, which shows each layer's own operation, and except
  /// in a class that derives from BatchNorm1d or BatchNorm2d.
  bool fuse(Tensor& x, Activation activation, Module*& output) override;

 protected:
  /// A shape that x may have. A message prints `axes`, then the number of channels, then "]". For
  /// example, {4, "images [N, H, W, "} gives "images [N, H, W, 16]".
  struct Takes {
    int rank;
    const char* axes;
  };
  /// name: the class name for messages.
  /// Throws: ShapeError if channels is not positive; DataError if epsilon or momentum is outside
  /// its range.
  BatchNorm(const char* name, int64_t channels, Options options, std::vector<Takes> takes);
  /// Uses existing tensors.
  /// Throws: also ShapeError unless each is [C], with the same C.
  BatchNorm(const char* name,
            Tensor gamma,
            Tensor beta,
            Tensor running_mean,
            Tensor running_var,
            Options options,
            std::vector<Takes> takes);
  Tensor forward(const Tensor& x) final { return take_forward(x); }
  Tensor take_forward(Tensor x) override;

 private:
  /// Throws: ShapeError if x has none of the layer's shapes (the message lists them), or if, in
  /// training, x has fewer than two values per channel.
  Tensor normalize(Tensor x, Activation activation);

  void check_options(const char* name) const;

  Options options_;
  std::vector<Takes> takes_;
  Tensor gamma_;
  Tensor beta_;
  Tensor running_mean_;
  Tensor running_var_;
};

/// Normalizes rows [N, C] or signals [N, L, C]. Quantization folds it into a Linear or Conv1d that
/// directly precedes it.
class BatchNorm1d : public BatchNorm {
 public:
  /// Throws: like BatchNorm().
  explicit BatchNorm1d(int64_t channels, Options options = {})
      : BatchNorm("BatchNorm1d", channels, options, {{2, "rows [N, "}, {3, "signals [N, L, "}}) {}
  /// Uses existing tensors, such as those of another layer. If a network uses the same parameters
  /// twice in a pass, make two layers that share them, because quantization refuses a layer that
  /// runs twice. In training, each of them updates the running statistics that they share; give
  /// each its own, zeros and ones, if the values that the two normalize differ.
  /// Throws: like BatchNorm().
  BatchNorm1d(
      Tensor gamma, Tensor beta, Tensor running_mean, Tensor running_var, Options options = {})
      : BatchNorm("BatchNorm1d",
                  std::move(gamma),
                  std::move(beta),
                  std::move(running_mean),
                  std::move(running_var),
                  options,
                  {{2, "rows [N, "}, {3, "signals [N, L, "}}) {}
  static constexpr std::string_view kType = "BatchNorm1d";
  static BatchNorm1d from(const Members& m) {
    return {m.gamma, m.beta, m.running_mean, m.running_var, m.options};
  }
  std::string_view type() const override { return kType; }
};

/// Normalizes images [N, H, W, C]. Quantization folds it into a Conv2d that directly precedes it.
class BatchNorm2d : public BatchNorm {
 public:
  /// Throws: like BatchNorm().
  explicit BatchNorm2d(int64_t channels, Options options = {})
      : BatchNorm("BatchNorm2d", channels, options, {{4, "images [N, H, W, "}}) {}
  /// Uses existing tensors, such as those of another layer. If a network uses the same parameters
  /// twice in a pass, make two layers that share them, because quantization refuses a layer that
  /// runs twice. In training, each of them updates the running statistics that they share; give
  /// each its own, zeros and ones, if the values that the two normalize differ.
  /// Throws: like BatchNorm().
  BatchNorm2d(
      Tensor gamma, Tensor beta, Tensor running_mean, Tensor running_var, Options options = {})
      : BatchNorm("BatchNorm2d",
                  std::move(gamma),
                  std::move(beta),
                  std::move(running_mean),
                  std::move(running_var),
                  options,
                  {{4, "images [N, H, W, "}}) {}
  static constexpr std::string_view kType = "BatchNorm2d";
  static BatchNorm2d from(const Members& m) {
    return {m.gamma, m.beta, m.running_mean, m.running_var, m.options};
  }
  std::string_view type() const override { return kType; }
};

}  // namespace quantrain
