#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, per channel. While training, mean and
/// (population) variance are those of the batch, and the running statistics move toward them by
/// `momentum` (the variance as the unbiased one); in evaluation they are the running statistics.
/// Shapes: x as the class says; everything else [C]  ->  y like x.
/// Parameters: "weight" (gamma, starts at 1), "bias" (beta, 0).
/// Buffers: "running_mean" (0), "running_var" (1).
/// Source: Ioffe and Szegedy 2015.
class BatchNorm : public Module {
 public:
  struct Options {
    float epsilon = 1e-5f;  ///< added to the variance, > 0
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

 protected:
  /// name: the class, in messages.
  /// Throws: ShapeError if channels are not positive; DataError for an epsilon or momentum outside
  /// of its range.
  BatchNorm(const char* name, int64_t channels, Options options);

  /// Throws: ShapeError naming what it takes, or if training has a single value for each channel.
  Tensor normalized(const Tensor& x, int rank, const char* takes);

 private:
  Options options_;
  Tensor gamma_;
  Tensor beta_;
  Tensor running_mean_;
  Tensor running_var_;
};

/// Of rows [N, C]: after a Linear, into which it folds.
class BatchNorm1d : public BatchNorm {
 public:
  /// Throws: as BatchNorm().
  explicit BatchNorm1d(int64_t channels, Options options = {})
      : BatchNorm("BatchNorm1d", channels, options) {}
  std::string_view type() const override { return "BatchNorm1d"; }

 protected:
  Tensor forward(const Tensor& x) override { return normalized(x, 2, "rows [N, "); }
};

/// Of images [N, H, W, C]: after a Conv2d, into which it folds.
class BatchNorm2d : public BatchNorm {
 public:
  /// Throws: as BatchNorm().
  explicit BatchNorm2d(int64_t channels, Options options = {})
      : BatchNorm("BatchNorm2d", channels, options) {}
  std::string_view type() const override { return "BatchNorm2d"; }

 protected:
  Tensor forward(const Tensor& x) override { return normalized(x, 4, "images [N, H, W, "); }
};

}  // namespace quantrain
