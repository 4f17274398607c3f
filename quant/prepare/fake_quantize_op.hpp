#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

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
/// Signed codes of 1 bit are the signs of x, and the gradient passes everywhere;
/// docs/quantization.md (27).
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

/// How y = s * (q - zero_point) changes with a parameter of one channel.
struct LearnedSlope {
  /// Times (half_even(x / s) - x / s), where x is inside of the range; 0 if it ends at codes.
  float inside = 0.0f;
  float below = 0.0f;
  float above = 0.0f;
};

/// A parameter on which the scale or the zero point of a fake quantization depends.
struct LearnedParameter {
  Tensor value;                        ///< [1], or [C] along params.axis; gets the gradient
  std::vector<LearnedSlope> slopes{};  ///< of each channel
  /// Whether the gradient is multiplied by 1 / sqrt(n * qmax), where n is the number of elements of
  /// one sample that share a parameter: x.elements() / (options.samples * value.elements()).
  bool normalized = true;
  /// Of each channel: how many steps s the parameter stands for, or 0. Each backward pass sets the
  /// least value that an optimizer's step leaves in it: unit mean|x| / max(qmax - zero_point,
  /// zero_point - qmin), or the magnitude that the value has now where x is 0 everywhere. Empty or
  /// 0: any value is allowed.
  std::vector<int32_t> units{};
};

struct Learning {
  std::vector<LearnedParameter> parameters{};
  /// Whether the range ends at the real values of its last codes: x is above where x / s >=
  /// qmax - zero_point, below where x / s < qmin - zero_point. Else, x is outside where its code
  /// before the clamp is.   docs/quantization.md (4)
  bool ends_at_codes = false;
};

/// fake_quantize with learned parameters. The forward pass uses params, which the caller computes
/// from the parameters' values.
/// Gradient of each parameter: the sum over x of grad_y times its slope. x gets grad_y inside, else
/// 0.   docs/quantization.md (4), (29)
/// Throws: as fake_quantize; ShapeError unless each parameter has as many elements as params.scale.
Tensor fake_quantize_learned(const Tensor& x,
                             const Learning& learning,
                             const QParams& params,
                             const FakeQuantizeOptions& options = {});

/// The same for a learned scale alone (LSQ). params.scale is learned_scale() of the values of
/// `scale`, except that values are raised that are so small that a quantized bias would exceed
/// 2^30. Gradient of `scale`: 1 / sqrt(n * qmax) times the sum over x of
///   grad_y * (half_even(x / s) - x / s)   if the code before the clamp lies in [qmin, qmax],
///   grad_y * (qmin - zero_point)          if it is lower,
///   grad_y * (qmax - zero_point)          if it is higher.
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
