#pragma once

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
  Tensor forward(const Tensor& x) final { return take_forward(x); }
  Tensor take_forward(Tensor x) override;

 private:
  /// Throws: ShapeError if x has none of the layer's shapes (the message lists them), or if, in
  /// training, x has fewer than two values per channel.
  Tensor normalize(Tensor x, Activation activation);

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
  std::string_view type() const override { return "BatchNorm1d"; }
};

/// Normalizes images [N, H, W, C]. Quantization folds it into a Conv2d that directly precedes it.
class BatchNorm2d : public BatchNorm {
 public:
  /// Throws: like BatchNorm().
  explicit BatchNorm2d(int64_t channels, Options options = {})
      : BatchNorm("BatchNorm2d", channels, options, {{4, "images [N, H, W, "}}) {}
  std::string_view type() const override { return "BatchNorm2d"; }
};

}  // namespace quantrain
