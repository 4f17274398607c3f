#pragma once

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

struct FakeQuantizeOptions {
  CodeStorage storage = CodeStorage::kU8;
  /// Gradient 0 outside of the representable range; false passes it everywhere (plain
  /// straight-through estimator).
  bool clamped = true;
  /// The result holds codes, and accumulators are requantized as integers; false gives the classic
  /// simulation in float. Types of more than 8 bits are always simulated in float.
  bool codes = true;
  /// Samples in x: 1 for weights, the batch size for activations. The gradient of a learned scale
  /// is normalized by the elements of one sample.
  int64_t samples = 1;
};

/// y = scale * (clamp(half_even(x / scale) + zero_point, qmin, qmax) - zero_point); if x holds
/// accumulators or codes of an activation, the code is computed from these integers by fixed-point
/// requantization.   docs/quantization.md (1), (3), (8)
/// Shapes: x [...], parameters per tensor or along params.axis ->  y like x, holding codes.
/// Gradient: grad_y where the code before the clamp lies in [qmin, qmax], else 0 (clamped
/// straight-through estimator); docs/quantization.md (4).
/// Throws: DataError if x has a NaN or an infinity; QuantError if the parameters are not valid;
/// ShapeError unless there are as many of them as channels.
/// Source: Bengio et al. 2013; Jacob et al. 2018, section 3.
Tensor fake_quantize(const Tensor& x,
                     const QParams& params,
                     const FakeQuantizeOptions& options = {});

/// The same with a learned scale (LSQ): scale, [1] or [C] along params.axis, is the tensor that
/// gets the gradient. The forward pass uses params.scale: the values of scale, raised to
/// kSmallestLearnedScale or to what a bias needs. Gradient of scale, with s = params.scale:
/// the sum over all x of grad_y * (half_even(x / s) - x / s) if the code before the clamp lies in
/// [qmin, qmax], grad_y * (qmin - zero_point) if it is lower, and grad_y * (qmax - zero_point) if
/// it is higher; all times 1 / sqrt(n * qmax). n is the number of elements of one sample that share
/// a scale: x.elements() / (options.samples * scale.elements()).   docs/quantization.md (4)
/// Throws: as fake_quantize; ShapeError unless scale has as many elements as params.scale.
/// Source: Esser et al. 2020, equations 1 to 3.
Tensor fake_quantize_learned(const Tensor& x,
                             const Tensor& scale,
                             const QParams& params,
                             const FakeQuantizeOptions& options = {});

inline constexpr float kSmallestLearnedScale = 1e-8f;

}  // namespace quantrain::quant
