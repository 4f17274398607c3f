#pragma once

#include <functional>

#include "framework/arithmetic/activation.hpp"
#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// Chooses the parameters of a result's codes from the range of the result's floats: per tensor, at
/// most 8 bits. If a float is NaN, the range is unspecified.
using ChooseCodes = std::function<QParams(const Range& range)>;

struct BatchNormOptions {
  float momentum = 0.1f;  ///< weight of the new batch in the running statistics
  float epsilon = 1e-5f;  ///< added to the variance
  bool training = true;   ///< use the batch's statistics and update the running statistics
  /// Applied to the result, in the same pass over memory. A recording shows it as an operation of
  /// its own.
  Activation activation = Activation::kNone;
  /// If set, the result after the activation is quantized in the same pass, as by fake_quantize,
  /// and y holds its codes (CodeStorage::kU8). Only with training.
  ChooseCodes quantize{};
};

/// y = activation((x - mean) / sqrt(variance + epsilon) * gamma + beta), per channel.
/// Training: uses the mean and the population variance of each channel's n values in this batch.
/// Then updates running = (1 - momentum) * running + momentum * batch. The running variance is
/// updated with the batch's unbiased variance, which is n / (n - 1) times the population variance.
/// Evaluation: uses the running statistics and updates nothing. On activation codes, evaluation is
/// an integer lookup with a table for each channel; the FakeQuantize that follows sets the
/// parameters of y.   docs/quantization.md (24)
/// Shapes: x [N, ..., C], such as rows [N, C], signals [N, L, C] or images [N, H, W, C]; all other
/// operands [C]  ->  y like x.
/// Gradient: to x, gamma and beta; in training also through mean and variance. It is 0 where the
/// activation or the quantization clamps; docs/quantization.md (4), (9). In evaluation the running
/// statistics are also inputs of the recorded node, but get no gradient.
/// Throws: ShapeError if a shape does not fit, or in training if there are fewer than two values
/// per channel; GraphError if a running statistic requires a gradient, or options.quantize is set
/// without options.training; DataError unless epsilon is positive and finite and 0 <= momentum <=
/// 1, if a float to quantize is not finite, or if the mean or variance of a batch is NaN or
/// infinite (the running statistics then stay as they are); QuantError if the chosen parameters are
/// not valid.
/// Source: Ioffe and Szegedy 2015; ONNX BatchNormalization.
Tensor batch_norm(Tensor x,
                  const Tensor& gamma,
                  const Tensor& beta,
                  Tensor running_mean,
                  Tensor running_variance,
                  const BatchNormOptions& options = {});

/// batch_norm(x / factor + shift, ..) in training. It needs no more passes over x than
/// batch_norm(x, ..), because normalisation cancels the factor and shift of each channel. For batch
/// norms that were folded into the preceding convolution. If x holds integer sums and is the only
/// handle, their memory becomes that of the floats.   docs/quantization.md (15)
/// Shapes: factor [C], without zeros; shift [C] or undefined; the others as above.
/// Gradient: to x, gamma, beta and factor. The gradient of factor is nonzero only because of
/// epsilon, and the gradient of shift is 0.
/// Throws: as above; ShapeError if factor or shift has another shape; GraphError unless
/// options.training is set.
Tensor rescaled_batch_norm(Tensor x,
                           const Tensor& factor,
                           const Tensor& shift,
                           const Tensor& gamma,
                           const Tensor& beta,
                           Tensor running_mean,
                           Tensor running_variance,
                           const BatchNormOptions& options = {});

}  // namespace quantrain
