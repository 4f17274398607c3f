#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, per channel. While training, mean and
/// (population) variance are those of the batch, and the running statistics move toward them by
/// `momentum` (the variance as the unbiased one); in evaluation they are the running statistics.
/// Shapes: x [N, H, W, C]; everything else [C]  ->  y like x.
/// Parameters: "weight" (gamma, starts at 1), "bias" (beta, 0).
/// Buffers: "running_mean" (0), "running_var" (1).
/// Source: Ioffe and Szegedy 2015.
class BatchNorm2d : public Module {
 public:
  struct Options {
    float epsilon = 1e-5f;  ///< added to the variance, > 0
    float momentum = 0.1f;  ///< weight of the batch in the running statistics, 0 to 1
  };

  /// Throws: ShapeError if channels are not positive; DataError for an epsilon or momentum outside
  /// of its range.
  explicit BatchNorm2d(int64_t channels) : BatchNorm2d(channels, Options{}) {}
  BatchNorm2d(int64_t channels, Options options);

  std::string_view type() const override { return "BatchNorm2d"; }
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

 protected:
  /// Throws: ShapeError if x is not [N, H, W, channels], or training has a single value for each
  /// channel.
  Tensor forward(const Tensor& x) override;

 private:
  Options options_;
  Tensor gamma_;
  Tensor beta_;
  Tensor running_mean_;
  Tensor running_var_;
};

}  // namespace quantrain
