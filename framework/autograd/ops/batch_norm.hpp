#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

struct BatchNormOptions {
  float momentum = 0.1f;  ///< of the running statistics: weight of the new batch
  float epsilon = 1e-5f;  ///< added to the variance
  bool training = true;   ///< normalise with the batch's own statistics and update the running ones
};

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, per channel.
/// Training: mean and population variance of the values of each channel in this batch; then
/// running = (1 - momentum) * running + momentum * batch, where the variance is the unbiased one
/// (times n / (n - 1)). Evaluation: the running statistics, and nothing is updated. In
/// evaluation, activation codes give an integer lookup with a table for each channel; the
/// FakeQuantize after it sets its parameters.   docs/quantization.md (24)
/// Shapes: x [N, ..., C], such as rows [N, C], signals [N, L, C] or images [N, H, W, C]; all others
/// [C]  ->  y like x.
/// Gradient: to x, gamma and beta; through mean and variance in training. In evaluation the running
/// statistics are inputs of the recorded node too, and get none.
/// Throws: ShapeError if a shape is another, or in training if there is not more than one value per
/// channel; GraphError if a running statistic requires a gradient; DataError unless epsilon is
/// positive and finite and 0 <= momentum <= 1.
/// Source: Ioffe and Szegedy 2015; ONNX BatchNormalization.
Tensor batch_norm(const Tensor& x,
                  const Tensor& gamma,
                  const Tensor& beta,
                  Tensor running_mean,
                  Tensor running_variance,
                  const BatchNormOptions& options = {});

/// batch_norm(x / factor + shift, ..) in training, in the same passes as batch_norm(x, ..): a
/// batch is normalised alike whatever each channel was multiplied by and shifted. For batch norms
/// that were folded into the convolution in front.   docs/quantization.md (15)
/// Shapes: factor [C], no element 0; shift [C] or undefined; the others as above.
/// Gradient: to x, gamma, beta and factor (epsilon is what makes it differ from 0); shift gets 0.
/// Throws: as above; ShapeError if factor or shift has another shape; GraphError unless
/// options.training.
Tensor rescaled_batch_norm(const Tensor& x,
                           const Tensor& factor,
                           const Tensor& shift,
                           const Tensor& gamma,
                           const Tensor& beta,
                           Tensor running_mean,
                           Tensor running_variance,
                           const BatchNormOptions& options = {});

}  // namespace quantrain
