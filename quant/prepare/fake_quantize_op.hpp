#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

struct FakeQuantizeOptions {
  CodeStorage storage = CodeStorage::kU8;
  /// true: the gradient is 0 outside of the representable range. false: it passes everywhere (plain
  /// straight-through estimator).
  bool clamped = true;
  /// true: the result holds codes, and waiting results are requantized as integers. false: the
  /// result holds floats, as in the classic simulation. Types of more than 8 bits are always
  /// simulated in float.
  bool codes = true;
  /// Samples in x: 1 for weights, the batch size for activations. The gradient of a learned scale
  /// is normalized by the elements of one sample.
  int64_t samples = 1;
};

/// y = scale * (clamp(half_even(x / scale) + zero_point, qmin, qmax) - zero_point). There is one
/// exception: if x holds a waiting result or activation codes, and y holds codes in
/// CodeStorage::kU8 with per-tensor parameters, fixed-point requantization computes y's codes from
/// the integers of x. docs/quantization.md (1), (3), (8)
/// Shapes: x [...], parameters per tensor or along params.axis  ->  y like x. y holds codes, or
/// floats if options.codes is false or the type has more than 8 bits.
/// Gradient: grad_y where the code before the clamp lies in [qmin, qmax], else 0 (clamped
/// straight-through estimator); docs/quantization.md (4). If options.clamped is false: grad_y.
/// Throws: DataError if x has a NaN or an infinity; QuantError if the parameters are not valid, a
/// multiplier of the requantization is out of range, or options.storage is CodeStorage::kS8 and the
/// type is unsigned; ShapeError if the parameters do not fit x's channels.
/// Source: Bengio et al. 2013; Jacob et al. 2018, section 3.
Tensor fake_quantize(const Tensor& x,
                     const QParams& params,
                     const FakeQuantizeOptions& options = {});

/// fake_quantize(x * factor), with one factor for each index of the first axis. x * factor is
/// rounded to float32 and not stored.
/// Shapes: x [C, ...], factor [C]; parameters per tensor or along axis 0  ->  y like x.
/// Gradient: let g be the gradient that fake_quantize passes to x * factor. x gets g * factor, and
/// factor[c] gets the sum of g * x over channel c.
/// Throws: as fake_quantize; ShapeError unless factor is [C]; QuantError if the type has more than
/// 8 bits or the axis is neither -1 nor 0.   docs/quantization.md (15)
Tensor fake_quantize_scaled(const Tensor& x,
                            const Tensor& factor,
                            const QParams& params,
                            const FakeQuantizeOptions& options = {});

/// Finds the parameters of a channel whose smallest and largest value are those of `range`, both
/// NaN if a value is. May be called by several threads.
using ChooseParams = std::function<ScaleZero(int64_t channel, const Range& range)>;

/// fake_quantize_scaled, or fake_quantize if `factor` is undefined, with parameters for each
/// channel of axis 0 that `choose` finds from the range of x, before the factor. A channel is
/// quantized as soon as its parameters are known, while it is in the cache.
/// Shapes: x [C, ...] with at least one element, factor [C] or undefined  ->  y like x.
/// Gradient: passes everywhere, because options.clamped must be false.
/// Throws: what `choose` throws, for the first channel for which it throws; DataError if x * factor
/// has a NaN or an infinity; ShapeError if x has no element or factor is not [C]; QuantError if the
/// type is not valid, has more than 8 bits, or is unsigned although options.storage is
/// CodeStorage::kS8, if options.clamped is set, or if a chosen parameter is not valid.
Tensor fake_quantize_chosen(const Tensor& x,
                            const Tensor& factor,
                            const QType& type,
                            const ChooseParams& choose,
                            const FakeQuantizeOptions& options);

/// fake_quantize with a learned scale (LSQ). The tensor `scale` gets the gradient; it has shape
/// [1], or [C] along params.axis. The forward pass uses params.scale. The caller sets it to
/// learned_scale() of the values of `scale`, but raises values that are so small that a quantized
/// bias would exceed 2^30.
/// Gradient of `scale`: 1 / sqrt(n * qmax) times the sum over x of
///   grad_y * (half_even(x / s) - x / s)   if the code before the clamp lies in [qmin, qmax],
///   grad_y * (qmin - zero_point)          if it is lower,
///   grad_y * (qmax - zero_point)          if it is higher,
/// where s = params.scale, and n is the number of elements of one sample that share a scale:
/// x.elements() / (options.samples * scale.elements()).   docs/quantization.md (4)
/// Domain of `scale`: the backward pass also sets the least value that an optimizer's step leaves
/// in it, mean|x| / max(qmax - zero_point, zero_point - qmin). At smaller scales most codes are
/// saturated and the gradient may vanish. Where x is 0 everywhere, the least value is s.
/// Throws: as fake_quantize; ShapeError unless scale has as many elements as params.scale.
/// Source: Esser et al. 2020, equations 1 to 3.
Tensor fake_quantize_learned(const Tensor& x,
                             const Tensor& scale,
                             const QParams& params,
                             const FakeQuantizeOptions& options = {});

/// What a user should do about values that are not finite, or beyond the range of a multiplier.
inline constexpr const char* kDivergence =
    "; in training, weights or scales that grow beyond bounds cause this: lower the learning rate";

inline constexpr float kSmallestLearnedScale = 1e-8f;
/// The scale that the value of a learned parameter stands for: its magnitude, at least
/// kSmallestLearnedScale.
inline float learned_scale(float value) { return std::max(std::abs(value), kSmallestLearnedScale); }
/// Replaces the values of a learned parameter by the scales they stand for, so that the gradient
/// has the right sign. Writes only if a value changes.
void make_positive(Tensor& scale);

}  // namespace quantrain::quant
