#pragma once

#include "framework/arithmetic/quantize.hpp"

namespace quantrain::quant {

/// The next power of two that is not below the scale, and the zero point for the same real value of
/// the lowest code; a symmetric scheme keeps its zero point. So the range still holds what it held,
/// up to the half step by which a zero point is rounded.   docs/quantization.md (30)
///   scale' = 2^ceil(log2(scale)),   zero_point' = clamp(qmin - half_even(low / scale')),
///   low = scale (qmin - zero_point)
/// A scale that is not finite, or has no next power of two, gives one that is not finite.
/// A multiplier (8) between such scales is a power of two, so it is exact.
ScaleZero with_power_of_two(const ScaleZero& params, const QType& type, QScheme scheme);

}  // namespace quantrain::quant
